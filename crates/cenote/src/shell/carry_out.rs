//! Carrying out the ledger's orders: wake, set the alarm, start work, raise events. No lock is
//! held.

use std::mem;
use std::sync::Arc;

use super::driver;
use super::guarded::guarded_now;
use super::pooled::Pooled;
use super::shared::{PoolOrders, PoolRest, Shared};
use crate::ledger::{Many, Orders};
use crate::manager::Manager;
use crate::rt;
use crate::time::Moment;
use crate::time::alarm::{self, Alarmed};

/// Where orders are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where tasks may be started.
    Task,
    /// In a destructor: no task is started. A caller that has a runtime is asked to do it.
    Drop,
}

impl Place {
    /// For a plain function, which may be called from anywhere.
    pub(crate) fn here() -> Self {
        if rt::is_present() {
            Self::Task
        } else {
            Self::Drop
        }
    }
}

impl<M: Manager + 'static> Shared<M> {
    /// Carries out the orders. Waiters are woken first, because all else may take its time.
    #[inline]
    pub(crate) fn carry_out(self: &Arc<Self>, orders: PoolOrders<M>, place: Place) {
        if let Some(rest) = wake_all::<M>(orders) {
            self.carry_out_rest(*rest, place);
        }
    }

    /// Carries out all orders but wake-ups.
    #[cold]
    pub(crate) fn carry_out_rest(self: &Arc<Self>, rest: PoolRest<M>, place: Place) {
        // The alarm knows the real time only.
        if let Some(at) = rest.alarm.filter(|_| !self.clock.is_paused()) {
            self.alarm.set(at, self);
        }
        if rest.ring {
            self.upkeep.ring(None);
        }
        if rest.owed {
            match place {
                Place::Task => self.do_owed_work(),
                Place::Drop => self.ask_for_help(),
            }
        }
        if let Some(circle) = rest.circle {
            self.observers.nested_acquire(circle.site, &circle.holders);
        }
    }

    fn do_owed_work(self: &Arc<Self>) {
        loop {
            let work = self.ledger().next_work();
            match work {
                Some(work) => rt::spawn(driver::run(self, work)),
                None => return,
            }
        }
    }

    /// Asks the callers that have a runtime to do the owed work: the first waiters, the futures
    /// that warm or close the pool, and the upkeep task. All are asked, because each may be on a
    /// runtime that is not driven. If there is none, the next caller does it.
    pub(crate) fn ask_for_help(self: &Arc<Self>) {
        self.call_helpers();
        self.upkeep.ring(Some(Arc::clone(self)));
    }

    pub(crate) fn call_helpers(&self) {
        let mut orders = Orders::default();
        self.ledger().call_helpers(&mut orders);
        let _ = wake_all::<M>(orders);
    }
}

/// Wakes every task that has to be woken, and returns the other orders. A waker is user code: if
/// one panics, which the panic hook reports, the others are woken all the same.
#[inline]
#[must_use = "orders are carried out"]
pub(crate) fn wake_all<M: Manager>(orders: PoolOrders<M>) -> Option<Box<PoolRest<M>>> {
    let (waker, mut rest) = orders.split();
    if let Some(waker) = waker {
        let _ = guarded_now(|| waker.wake());
    }
    if let Some(rest) = &mut rest {
        wake_many::<M>(mem::take(&mut rest.many));
    }
    rest
}

#[cold]
fn wake_many<M: Manager>(many: Vec<Many<Box<Pooled<M>>>>) {
    for one in &many {
        if let Many::Wake(waker) = one {
            let _ = guarded_now(|| waker.wake_by_ref());
        }
    }
    let _ = guarded_now(|| drop(many));
}

impl<M: Manager + 'static> Alarmed for Shared<M> {
    fn alarm(self: Arc<Self>, at: Moment, now: Moment) -> Option<Moment> {
        let mut next = None;
        // The alarm may have been set before the clock was paused.
        if !self.clock.is_paused() {
            let mut orders = Orders::default();
            next = self.ledger().alarm(at, now, &mut orders);
            let rest = wake_all::<M>(orders);
            if rest.is_some_and(|rest| rest.owed || rest.ring) {
                self.ask_for_help();
            }
        }
        // All other references may be gone by now. Then the manager goes with this one, and that
        // is user code.
        if let Some(last) = Arc::into_inner(self) {
            alarm::drop_elsewhere(last);
        }
        next
    }
}
