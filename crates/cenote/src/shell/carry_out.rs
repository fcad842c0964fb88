//! Carrying out the ledger's orders: wake, set the alarm, start work, raise events. No lock is
//! held.

use std::mem;
use std::sync::Arc;

use super::guarded::guarded_now;
use super::kind::{Kind, Threads};
use super::shared::{PoolOrders, PoolRef, PoolRest, Shared};
use crate::ledger::{Many, Orders, Resource, Rest};
use crate::manager::Manager;
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

impl<K: Kind> PoolRef<K> {
    /// Carries out the orders. Waiters are woken first, because all else may take its time.
    #[inline]
    pub(crate) fn carry_out(&self, orders: PoolOrders<K>, place: Place) {
        if let Some(rest) = wake_all(orders) {
            self.carry_out_rest(*rest, place);
        }
    }

    /// Carries out all orders but wake-ups.
    #[cold]
    pub(crate) fn carry_out_rest(&self, rest: PoolRest<K>, place: Place) {
        if let Some(at) = rest.alarm {
            K::set_alarm(self, at);
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

    fn do_owed_work(&self) {
        loop {
            let work = self.ledger().next_work();
            let Some(work) = work else { return };
            if !K::start_work(self, work) {
                return;
            }
        }
    }

    /// Asks the callers that have a runtime to do the owed work: the first waiters, the futures
    /// that warm or close the pool, and the upkeep task. All are asked, because each may be on a
    /// runtime that is not driven. If there is none, the next caller does it.
    pub(crate) fn ask_for_help(&self) {
        self.call_helpers();
        self.upkeep.ring(Some(self.clone()));
    }

    pub(crate) fn call_helpers(&self) {
        let mut orders = Orders::default();
        self.ledger().call_helpers(&mut orders);
        let _ = wake_all(orders);
    }
}

/// Wakes every task that has to be woken, and returns the other orders. A waker is user code: if
/// one panics, which the panic hook reports, the others are woken all the same.
#[inline]
#[must_use = "orders are carried out"]
pub(crate) fn wake_all<R: Resource>(orders: Orders<R>) -> Option<Box<Rest<R>>> {
    let (waker, mut rest) = orders.split();
    if let Some(waker) = waker {
        let _ = guarded_now(|| waker.wake());
    }
    if let Some(rest) = &mut rest {
        wake_many(mem::take(&mut rest.many));
    }
    rest
}

#[cold]
fn wake_many<R: Resource>(many: Vec<Many<R>>) {
    for one in &many {
        if let Many::Wake(waker) = one {
            let _ = guarded_now(|| waker.wake_by_ref());
        }
    }
    let _ = guarded_now(|| drop(many));
}

impl<M: Manager + 'static> Alarmed for Shared<Threads<M>> {
    fn alarm(self: Arc<Self>, at: Moment, now: Moment) -> Option<Moment> {
        let mut next = None;
        let pool: PoolRef<Threads<M>> = PoolRef(self);
        // The alarm may have been set before the clock was paused.
        if !pool.clock.is_paused() {
            let mut orders = Orders::default();
            next = pool.ledger().alarm(at, now, &mut orders);
            let rest = wake_all(orders);
            if rest.is_some_and(|rest| rest.owed || rest.ring) {
                pool.ask_for_help();
            }
        }
        // All other references may be gone by now. Then the manager goes with this one, and that
        // is user code.
        if let Some(last) = Arc::into_inner(pool.0) {
            alarm::drop_elsewhere(last);
        }
        next
    }
}
