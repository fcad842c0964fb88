//! What all handles, leases and tasks of one pool share: the ledger behind its lock, and the ways to carry out its orders.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::alarm::{self, Alarmed};
use crate::bell::Bell;
use crate::breaker::{BreakerState, Failure, Recovery, Strategy, Verdict};
use crate::clock::Clock;
use crate::config::Limits;
use crate::driver;
use crate::error::{AcquireError, OpenError, TimedOut};
use crate::guarded::guarded_now;
use crate::hooks::Hooks;
use crate::ledger::{Circle, Grant, Ledger, Orders, Refusal, Resource, SlotNo, TimeIsUp};
use crate::loan::Loan;
use crate::manager::Manager;
use crate::moment::Moment;
use crate::observer::{
    BreakerChanged, Leaked, NestedAcquire, Observers, PoolClosed, TimeoutRaised,
};
use crate::rt;
use crate::sync::{Apart, AtomicUsize, Mutex, MutexGuard, PoisonError};
use crate::tags::Tags;
use crate::tray::Trays;

pub(crate) type Book<M> = Ledger<Box<Loan<M>>>;

pub(crate) struct Shared<M: Manager + 'static> {
    pub(crate) name: Arc<str>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) manager: M,
    pub(crate) hooks: Hooks<M::Resource>,
    pub(crate) observers: Observers,
    pub(crate) strategy: Option<Box<dyn Strategy>>,
    /// Must something be done with every resource that comes back?
    pub(crate) works_on_return: bool,
    pub(crate) trays: Trays<Loan<M>>,
    pub(crate) tags: Tags,
    /// What the trays tell the time by.
    pub(crate) clock: Clock,
    pub(crate) book: Apart<Mutex<Book<M>>>,
    pub(crate) bell: Arc<Bell<M>>,
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

/// What a strategy is told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Evidence {
    /// A return was accepted; of a probe, or of something that was lent before.
    Accepted {
        probe: bool,
    },
    Failed(Failure),
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
    /// The ledger, with nothing set aside. Take, make one call, let go. No user code runs under this lock, so only a bug of ours could
    /// poison it, and then the book is better than none.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Book<M>> {
        let mut book = self.lock_as_is();
        self.fetch(&mut book);
        book
    }

    /// The ledger as it is: for what does not depend on the slots that are set aside.
    pub(crate) fn lock_as_is(&self) -> MutexGuard<'_, Book<M>> {
        self.book.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ledger, for one who asks for a resource.
    pub(crate) fn lock_to_ask(&self, now: Moment) -> MutexGuard<'_, Book<M>> {
        let mut book = self.lock_as_is();
        // Nothing is set aside where nobody keeps the pool up. Whoever stops doing so fetches what was.
        book.keep_up(self.bell.is_answered());
        if book.must_fetch(now) {
            self.fetch(&mut book);
        }
        book
    }

    fn fetch(&self, book: &mut Book<M>) {
        while let Some(slot) = book.next_aside() {
            self.fetch_one(book, slot);
        }
    }

    /// Under the book's lock, so that nobody sees it neither here nor there.
    pub(crate) fn fetch_one(&self, book: &mut Book<M>, slot: SlotNo) {
        if let Some(mut fetched) = self.trays.close(slot) {
            match &mut fetched.resource {
                Some(loan) => loan.shelve(),
                None => self.tags.write(slot, fetched.asker.owner),
            }
            book.fetched(slot, fetched);
        }
    }

    /// Does what the ledger ordered. The lock is not held.
    pub(crate) fn carry_out(self: &Arc<Self>, mut orders: Orders<Box<Loan<M>>>, place: Place) {
        self.obey(&mut orders, place);
    }

    /// The same, in place: for those who are in a hurry.
    #[inline]
    pub(crate) fn obey(self: &Arc<Self>, orders: &mut Orders<Box<Loan<M>>>, place: Place) {
        orders.call_all(|grant| self.refused_grant(grant));
        if orders.has_more() {
            self.carry_out_more(orders, place);
        }
    }

    /// One for whom it was is gone. The next may have it.
    #[cold]
    pub(crate) fn refused_grant(self: &Arc<Self>, grant: Grant<Box<Loan<M>>>) {
        let orders = self.lock_as_is().refused(grant, rt::now());
        self.carry_out(orders, Place::Drop);
    }

    pub(crate) fn tell_of(&self, circle: &Circle) {
        let event = NestedAcquire {
            pool: &self.name,
            site: circle.site,
            holders: &circle.holders,
        };
        self.observers
            .tell(|observer| observer.nested_acquire(&event));
    }

    #[cold]
    fn carry_out_more(self: &Arc<Self>, orders: &Orders<Box<Loan<M>>>, place: Place) {
        if orders.owed {
            match place {
                Place::Task => self.do_owed_work(),
                Place::Drop => self.ask_for_help(),
            }
        }
        if orders.ring {
            self.bell.ring(None);
        }
        if let Some(at) = orders.alarm {
            alarm::set(at, self);
        }
        if let Some(circle) = &orders.circle {
            self.tell_of(circle);
        }
        if orders.waste {
            let waste = self.lock_as_is().take_waste();
            // Errors are the user's, and so is their destructor. There is nobody to tell if it panics.
            let _ = guarded_now(|| drop(waste));
        }
    }

    fn do_owed_work(self: &Arc<Self>) {
        loop {
            let work = self.lock_as_is().next_work();
            match work {
                Some(work) => rt::spawn(driver::run(self, work)),
                None => return,
            }
        }
    }

    /// Owed work is done by whoever has a runtime: the first in line, one who warms or closes the pool, or the upkeep task. All are asked, for
    /// each may be on a runtime that nobody drives. If there is none, the next one who comes does it.
    pub(crate) fn ask_for_help(self: &Arc<Self>) {
        let mut orders = self.lock_as_is().call_helpers();
        orders.call_all(|grant| self.refused_grant(grant));
        self.bell.ring(Some(Arc::clone(self)));
    }

    /// Must somebody be told of every return?
    pub(crate) fn is_watched(&self) -> bool {
        self.observers.any() || self.strategy.is_some()
    }

    /// Tells everybody that nothing is lent any more, and closes what is idle.
    pub(crate) fn close(self: &Arc<Self>, place: Place) {
        let (was_open, in_use, orders) = {
            let mut book = self.lock();
            let (was_open, orders) = book.close(rt::now());
            (was_open, book.status(rt::now()).in_use, orders)
        };
        if was_open {
            self.observers.tell(|observer| {
                observer.pool_closed(&PoolClosed {
                    pool: &self.name,
                    in_use,
                })
            });
        }
        self.carry_out(orders, place);
    }

    /// By hand, or by a strategy that saw the breaker in the state `seen`.
    pub(crate) fn set_breaker(
        self: &Arc<Self>,
        seen: Option<BreakerState>,
        to: BreakerState,
        place: Place,
    ) {
        let (from, orders) = self.lock().set_breaker(seen, to, rt::now());
        if from != to && seen.is_none_or(|seen| seen == from) {
            self.observers.tell(|observer| {
                observer.breaker_changed(&BreakerChanged {
                    pool: &self.name,
                    from,
                    to,
                })
            });
        }
        self.carry_out(orders, place);
    }

    /// What does the strategy say to this?
    pub(crate) fn report(self: &Arc<Self>, evidence: Evidence, place: Place) {
        if self.strategy.is_some() {
            let state = self.lock_as_is().breaker().state;
            self.report_in(state, evidence, place);
        }
    }

    /// The same, where the state of the breaker is known.
    pub(crate) fn report_in(
        self: &Arc<Self>,
        state: BreakerState,
        evidence: Evidence,
        place: Place,
    ) {
        let Some(strategy) = &self.strategy else {
            return;
        };
        let verdict = catch_unwind(AssertUnwindSafe(|| match evidence {
            Evidence::Accepted { probe } if !probe && state == BreakerState::Recovering => {
                Verdict::Keep
            }
            Evidence::Accepted { .. } => strategy.report_success(state, rt::now().instant()),
            Evidence::Failed(failure) => {
                strategy.report_failure(state, failure, rt::now().instant())
            }
        }));
        match verdict.unwrap_or(Verdict::Keep) {
            Verdict::Keep => {}
            Verdict::Activate => self.set_breaker(Some(state), BreakerState::Active, place),
            Verdict::Deactivate => self.set_breaker(Some(state), BreakerState::Inactive, place),
        }
    }

    /// One round of upkeep. Answers with when the next is due.
    pub(crate) fn keep_up(self: &Arc<Self>) -> Option<Moment> {
        self.ask_recovery();
        let (upkeep, orders) = self.lock().upkeep(rt::now());
        for holder in &upkeep.leaked {
            let event = Leaked {
                pool: &self.name,
                holder,
            };
            self.observers.tell(|observer| observer.leaked(&event));
        }
        self.carry_out(orders, Place::Task);
        upkeep.next
    }

    fn ask_recovery(self: &Arc<Self>) {
        let asked = self.lock().asks_recovery(rt::now());
        let Some(inactive_for) = asked else { return };
        let recovery = self.strategy.as_ref().map(|strategy| {
            let answer = catch_unwind(AssertUnwindSafe(|| strategy.should_recover(inactive_for)));
            answer.unwrap_or(Recovery::After(AFTER_PANIC))
        });
        match recovery {
            None => self.lock().ask_again(None, rt::now()),
            Some(Recovery::After(after)) if !after.is_zero() => {
                self.lock().ask_again(Some(after), rt::now())
            }
            Some(_) => self.set_breaker(
                Some(BreakerState::Inactive),
                BreakerState::Recovering,
                Place::Task,
            ),
        }
    }

    /// What one hears who ran out of time, as the error of one who asked there.
    pub(crate) fn timed_out(
        &self,
        over: TimeIsUp<OpenError<M::Error>>,
        site: &'static Location<'static>,
    ) -> AcquireError<M::Error> {
        if self.observers.any() {
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

    /// What the ledger refused, as the error of one who asked there.
    #[cold]
    pub(crate) fn refused(
        &self,
        refusal: Refusal<OpenError<M::Error>>,
        site: &'static Location<'static>,
    ) -> AcquireError<M::Error> {
        let pool = || Arc::clone(&self.name);
        match refusal {
            Refusal::Closed => AcquireError::Closed { pool: pool() },
            Refusal::Unavailable {
                since,
                retry_after,
                cause,
            } => AcquireError::Unavailable {
                pool: pool(),
                since,
                retry_after,
                cause,
            },
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

impl<M: Manager + 'static> Alarmed for Shared<M> {
    fn alarm(self: Arc<Self>, at: Moment, now: Moment) -> Option<Moment> {
        let (next, mut orders) = self.lock_as_is().alarm(at, now);
        orders.call_all(|_| unreachable!("bug: the alarm serves nobody"));
        // All other references may be gone by now. Then the manager goes with this one, and that is foreign code.
        if let Some(last) = Arc::into_inner(self) {
            alarm::drop_elsewhere(last);
        }
        next
    }
}

/// When a strategy that panicked is asked again.
const AFTER_PANIC: Duration = Duration::from_secs(1);

impl<M: Manager + 'static> Drop for Shared<M> {
    fn drop(&mut self) {
        if self.lock_as_is().was_alarm_set() {
            alarm::forget(self);
        }
        // The upkeep task finds nothing to keep up, and ends.
        self.bell.ring(None);
    }
}
