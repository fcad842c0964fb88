//! The parts that all handles, leases and tasks of one pool share: the ledger behind its lock, and the ways to carry out its orders.

use std::panic::Location;
use std::sync::Arc;

use crate::alarm::{self, Alarmed, Alarming};
use crate::breaker::Strategy;
use crate::clock::Clock;
use crate::config::Limits;
use crate::driver;
use crate::error::{AcquireError, OpenError, TimedOut};
use crate::guarded::guarded_now;
use crate::hooks::Hooks;
use crate::ledger::{Ledger, Orders, Refusal, Report, TimeIsUp, TrayNo, Unavailable};
use crate::manager::Manager;
use crate::moment::Moment;
use crate::observer::{Leaked, NestedAcquire, Observers, PoolClosed, TimeoutRaised};
use crate::pooled::Pooled;
use crate::rt;
use crate::status::Holder;
use crate::sync::{AtomicUsize, CachePadded, Mutex, MutexGuard, Ordering, PoisonError};
use crate::tray::Trays;
use crate::upkeep::Upkeep;

pub(crate) type Book<M> = Ledger<Box<Pooled<M>>>;

pub(crate) struct Shared<M: Manager + 'static> {
    pub(crate) name: Arc<str>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) manager: M,
    pub(crate) hooks: Hooks<M::Resource>,
    pub(crate) observers: Observers,
    pub(crate) strategy: Option<Box<dyn Strategy>>,
    /// Every resource that comes back needs work: a check, or a hook.
    pub(crate) works_on_return: bool,
    pub(crate) trays: Trays<Pooled<M>>,
    pub(crate) clock: Clock,
    pub(crate) ledger: CachePadded<Mutex<Book<M>>>,
    pub(crate) alarmed: Alarming,
    pub(crate) upkeep: Arc<Upkeep<M>>,
    /// How many `Pool` handles there are. When the last one goes, the pool closes; leases may outlive it.
    pub(crate) handles: AtomicUsize,
}

/// Where orders are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where tasks may be started.
    Task,
    /// In a destructor: nothing is started, somebody else is asked to.
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
    /// The ledger. Take it, make one call, let go. No user code runs under this lock, so only a bug of ours could poison it, and then the
    /// ledger is better than none.
    pub(crate) fn ledger(&self) -> MutexGuard<'_, Book<M>> {
        self.ledger.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ledger, with no slot on a tray: for everything that depends on all slots.
    pub(crate) fn ledger_off_trays(&self) -> MutexGuard<'_, Book<M>> {
        let mut ledger = self.ledger();
        self.clear_trays(&mut ledger);
        ledger
    }

    /// The ledger, for a caller that asks for a resource.
    pub(crate) fn ledger_for_request(&self, now: Moment) -> MutexGuard<'_, Book<M>> {
        let mut ledger = self.ledger();
        // No slot is put on a tray while there is no upkeep task. A task that ends clears them.
        ledger.keep_up(self.upkeep.is_running());
        if ledger.needs_trays(now) {
            self.clear_trays(&mut ledger);
        }
        ledger
    }

    fn clear_trays(&self, ledger: &mut Book<M>) {
        for tray in ledger.trays() {
            if ledger.is_tray_taken(tray) {
                self.take_off(ledger, tray);
            }
        }
    }

    /// Takes a slot off its tray. Under the ledger's lock, so that it is always either on its tray or in the ledger.
    pub(crate) fn take_off(&self, ledger: &mut Book<M>, tray: TrayNo) {
        let off = self.trays.close(tray);
        let mut off = off.expect("bug: a tray that is taken is open");
        if let Some(pooled) = &mut off.resource {
            // A pool that is referred to by its own idle resources would never end. This is not the last reference: the caller has one.
            pooled.unbind();
        }
        ledger.taken_off(tray, off);
    }

    /// Does what the ledger ordered. The lock is not held. Waiters are woken first, because all else may take its time.
    #[inline]
    pub(crate) fn carry_out(self: &Arc<Self>, orders: &mut Orders<Box<Pooled<M>>>, place: Place) {
        wake_all(orders);
        if orders.has_more() {
            self.carry_out_more(orders, place);
        }
    }

    #[cold]
    fn carry_out_more(self: &Arc<Self>, orders: &Orders<Box<Pooled<M>>>, place: Place) {
        if let Some(at) = orders.alarm {
            self.set_alarm(at);
        }
        if orders.ring {
            self.upkeep.ring(None);
        }
        if orders.owed {
            match place {
                Place::Task => self.do_owed_work(),
                Place::Drop => self.ask_for_help(),
            }
        }
        if orders.waste {
            let waste = self.ledger().take_waste();
            // Errors are the user's, and so is their destructor. A panic in it has been reported by the panic hook.
            let _ = guarded_now(|| drop(waste));
        }
        if let Some(circle) = &orders.circle {
            self.tell_of_circle(circle.site, &circle.holders);
        }
    }

    #[cold]
    fn set_alarm(self: &Arc<Self>, at: Moment) {
        if !self.clock.is_paused() {
            self.alarmed.set(at, self);
        }
    }

    /// Returns whether waiters need timers of their own: the alarm knows the real time only, and its thread may have failed to start.
    #[inline]
    pub(crate) fn needs_timers(&self) -> bool {
        self.clock.is_paused() || self.alarmed.is_missing()
    }

    /// Returns whether this process is a fork of the one that set the alarm: the alarm's thread does not survive a fork.
    pub(crate) fn has_forked(&self) -> bool {
        self.alarmed.has_forked()
    }

    pub(crate) fn tell_of_circle(&self, site: &'static Location<'static>, holders: &[Holder]) {
        let event = NestedAcquire {
            pool: &self.name,
            site,
            holders,
        };
        self.observers
            .tell(|observer| observer.nested_acquire(&event));
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

    /// Owed work is done by a caller that has a runtime: a waiter, a future that warms or closes the pool, or the upkeep task. All are asked,
    /// because each may be on a runtime that is not driven. If there is none, the next caller does it.
    pub(crate) fn ask_for_help(self: &Arc<Self>) {
        let mut orders = self.ledger().call_helpers();
        wake_all(&mut orders);
        self.upkeep.ring(Some(Arc::clone(self)));
    }

    /// Returns whether an observer or a strategy is told of every return.
    pub(crate) fn is_watched(&self) -> bool {
        self.observers.any() || self.strategy.is_some()
    }

    /// Closes the pool: every waiter is told, and idle resources are closed.
    pub(crate) fn close(self: &Arc<Self>, place: Place) {
        let now = rt::now();
        let (was_open, in_use, mut orders) = {
            let mut ledger = self.ledger_off_trays();
            let (was_open, orders) = ledger.close(now);
            (was_open, ledger.status(now).in_use, orders)
        };
        self.carry_out(&mut orders, place);
        if was_open {
            self.observers.tell(|observer| {
                observer.pool_closed(&PoolClosed {
                    pool: &self.name,
                    in_use,
                })
            });
        }
    }

    /// One round of upkeep. Returns when the next is due.
    pub(crate) fn keep_up(self: &Arc<Self>) -> Option<Moment> {
        if self.clock.notice_pause() {
            // The alarm of the waiters does not know: they need timers of their own.
            let mut orders = self.ledger().call_helpers();
            wake_all(&mut orders);
        }
        self.ask_recovery();
        let (upkeep, mut orders) = self.ledger_off_trays().upkeep(rt::now());
        self.carry_out(&mut orders, Place::Task);
        for holder in &upkeep.leaked {
            let event = Leaked {
                pool: &self.name,
                holder,
            };
            self.observers.tell(|observer| observer.leaked(&event));
        }
        upkeep.next
    }

    /// The error of a caller that timed out. Its events are raised before it returns.
    pub(crate) fn timed_out(
        &self,
        over: TimeIsUp<OpenError<M::Error>>,
        site: &'static Location<'static>,
    ) -> AcquireError<M::Error> {
        if self.observers.any() {
            let Report {
                circle_told,
                circle,
                ..
            } = &*over.seen;
            if let Some(told) = circle_told {
                if !told.swap(true, Ordering::AcqRel) {
                    self.tell_of_circle(site, circle);
                }
            }
            let event = TimeoutRaised {
                pool: &self.name,
                site,
                waited: over.waited(),
                status: &over.seen.status,
            };
            self.observers.tell(|observer| observer.timed_out(&event));
        }
        AcquireError::TimedOut(TimedOut(over))
    }

    /// The error of a caller that the ledger refused.
    #[cold]
    pub(crate) fn refused(
        &self,
        refusal: Refusal<OpenError<M::Error>>,
        site: &'static Location<'static>,
    ) -> AcquireError<M::Error> {
        let pool = || Arc::clone(&self.name);
        match refusal {
            Refusal::Closed => AcquireError::Closed { pool: pool() },
            Refusal::Unavailable(unavailable) => {
                let Unavailable {
                    since,
                    retry_after,
                    cause,
                } = *unavailable;
                AcquireError::Unavailable {
                    pool: pool(),
                    since,
                    retry_after,
                    cause,
                }
            }
            Refusal::Open(error) => AcquireError::Open {
                pool: pool(),
                error,
            },
            Refusal::TimedOut(over) => self.timed_out(over, site),
            Refusal::Rejected { waiting } => AcquireError::Rejected {
                pool: pool(),
                waiting,
            },
            Refusal::Nested { held } => AcquireError::Nested { pool: pool(), held },
        }
    }
}

/// Wakes everything that has to be woken. A waker is user code: if one panics, which the panic hook has told, the others are woken all the
/// same.
#[inline]
pub(crate) fn wake_all<M: Manager>(orders: &mut Orders<Box<Pooled<M>>>) {
    if let Some(waker) = orders.first_waker() {
        let _ = guarded_now(|| waker.wake());
    }
    if let Some(mut more) = orders.more_wakers() {
        for waker in more.wakers.drain(..) {
            let _ = guarded_now(|| waker.wake());
        }
        // Wakers and mail that are not needed any more.
        let _ = guarded_now(|| drop(more));
    }
}

impl<M: Manager + 'static> Alarmed for Shared<M> {
    fn alarm(self: Arc<Self>, at: Moment, now: Moment) -> Option<Moment> {
        let mut next = None;
        // The alarm may have been set before the clock was paused.
        if !self.clock.is_paused() {
            let (at, mut orders) = self.ledger().alarm(at, now);
            next = at;
            wake_all(&mut orders);
            if orders.owed || orders.ring {
                self.ask_for_help();
            }
        }
        // All other references may be gone by now. Then the manager goes with this one, and that is user code.
        if let Some(last) = Arc::into_inner(self) {
            alarm::drop_elsewhere(last);
        }
        next
    }
}

impl<M: Manager + 'static> Drop for Shared<M> {
    fn drop(&mut self) {
        if self.ledger().was_alarm_set() {
            alarm::forget(self);
        }
        // The upkeep task finds nothing to keep up, and ends.
        self.upkeep.ring(None);
    }
}
