//! The world of a program: the real ledger of a pool of one resource behind a lock, the state
//! outside the ledger, and the check after every step.

use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use shuttle::thread;

use super::super::{
    Answer, Ask, Asker, Begun, Condition, HELD_UP_AFTER, Job, Ledger, Mail, Manner, Many, Orders,
    Resource, SlotNo, Work,
};
use super::schedule::{Step, about_to, quietly};
use super::waiter::{End, Script, Waiter};
use crate::breaker::BreakerState;
use crate::config::{Config, Limits, OnOpenError};
use crate::error::{Cause, OpenError};
use crate::rt::sync::Mutex as Lock;
use crate::time::Moment;

/// How long a waiter with a deadline waits.
const LIMIT: Duration = Duration::from_millis(10);

/// The resource. It cannot be copied.
#[derive(Debug)]
pub(super) struct Token(SlotNo);

impl Resource for Token {
    type Error = &'static str;

    fn opened(&mut self, _: SlotNo, _: u64) {}

    fn lent(&mut self, _: u64, _: bool) {}

    fn slot(&self) -> SlotNo {
        self.0
    }
}

pub(super) struct World {
    ledger: Lock<Ledger<Token>>,
    start: Moment,
    outside: Mutex<Outside>,
}

/// The state outside the ledger. Its lock is never held over a switch to another thread.
#[derive(Default)]
pub(super) struct Outside {
    pub(super) waiters: Vec<Arc<Waiter>>,
    /// The wakers that the ledger ordered to wake and that were not woken yet.
    on_their_way: Vec<Waker>,
    /// The lease that is out when the program begins.
    lent: Option<Token>,
    /// The slot that is being opened.
    pub(super) opening: Option<SlotNo>,
    pub(super) begins_lent: bool,
    holders: usize,
    pub(super) opened: usize,
    pub(super) closed: usize,
}

impl World {
    /// A pool whose resource is lent, or one without a resource.
    pub(super) fn new(lent: bool) -> Self {
        let config = Config {
            max_size: 1,
            max_lifetime: None,
            idle_timeout: None,
            leak_after: None,
            check_after_idle: None,
            on_open_error: OnOpenError::Fail,
            ..Config::default()
        };
        let limits = Arc::new(Limits::check(config).expect("these settings are valid"));
        let start = Moment::from_nanoseconds(1 << 50);
        let ledger = Ledger::new(limits, "pool".into(), false, 0, 0, start);
        let world = Self {
            ledger: Lock::new(ledger),
            start,
            outside: Mutex::default(),
        };
        if lent {
            let grant = world.acquire(start);
            let mut outside = world.outside();
            outside.lent = Some(grant);
            outside.begins_lent = true;
            drop(outside);
        }
        world
    }

    pub(super) fn outside(&self) -> MutexGuard<'_, Outside> {
        self.outside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before any deadline.
    pub(super) fn early(&self) -> Moment {
        self.start + LIMIT / 2
    }

    /// After all deadlines.
    pub(super) fn late(&self) -> Moment {
        self.start + 2 * LIMIT
    }

    /// When the alarm wakes the waiters, so that they look again.
    pub(super) fn later(&self) -> Moment {
        self.start + HELD_UP_AFTER
    }

    /// Makes one call to the ledger under its lock, checks the world, and wakes without the lock.
    pub(super) fn enter<T>(
        &self,
        now: Moment,
        call: impl FnOnce(&mut Ledger<Token>, &mut Orders<Token>) -> T,
    ) -> T {
        about_to(Step::Enter);
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        about_to(Step::Leave);
        self.each_waiter(|waiter| {
            if waiter.deadline <= now {
                waiter.may_end(End::TimedOut);
            }
        });
        let mut orders = Orders::default();
        let done = call(&mut ledger, &mut orders);
        let wakers = quietly(|| {
            let wakers = wakers_of(orders);
            self.outside().on_their_way.extend(wakers.iter().cloned());
            self.check(&mut ledger, now);
            drop(ledger);
            wakers
        });
        about_to(Step::Sleep);
        for waker in wakers {
            // Other threads may come between the delivery and the wake-up.
            about_to(Step::Wake);
            thread::sleep(Duration::ZERO);
            about_to(Step::Sleep);
            let mut outside = self.outside();
            let place = outside
                .on_their_way
                .iter()
                .position(|it| it.will_wake(&waker));
            outside
                .on_their_way
                .swap_remove(place.expect("it was put there"));
            drop(outside);
            waker.wake();
        }
        done
    }

    fn each_waiter(&self, act: impl Fn(&Waiter)) {
        self.outside().waiters.iter().for_each(|waiter| act(waiter));
    }

    /// Checks every waiter between two polls: it is in the queue or has its outcome, and the waker
    /// of its last poll is in the queue, on its way to be woken, or was woken.
    fn check(&self, ledger: &mut Ledger<Token>, now: Moment) {
        let waiters = self.outside().waiters.clone();
        for waiter in waiters {
            let Some((ticket, mailbox)) = waiter.place() else {
                continue;
            };
            let mail = mailbox.take();
            let (has_mail, has_grant) = (mail.is_some(), matches!(mail, Some(Mail::Grant(_))));
            if let Some(mail) = mail {
                mailbox.deliver(mail);
            }
            let is_queued = ledger.waiters.waiter(ticket).is_some();
            if waiter.place().is_none() {
                // It was polled meanwhile.
                continue;
            }
            assert!(
                is_queued != has_mail,
                "queued: {is_queued}, mail: {has_mail}"
            );
            if has_grant && waiter.is_newly_granted() {
                assert!(waiter.deadline > now, "granted after its deadline");
            }
            let waker = waiter.waker();
            let holds = |wakers: &[Waker]| wakers.iter().any(|other| other.will_wake(&waker));
            let is_registered = is_queued && holds(&ledger.queued_wakers());
            let is_woken = waiter.is_woken() || holds(&self.outside().on_their_way);
            assert!(is_registered || is_woken, "its last waker is nowhere");
        }
    }

    /// A caller asks. A newcomer may be served or refused at once.
    pub(super) fn join(&self, script: &Script) -> Arc<Waiter> {
        let now = self.start;
        let deadline = if script.hurries {
            now + LIMIT
        } else {
            Moment::NEVER
        };
        let waiter = Waiter::new(deadline);
        let mut waker = Some(waiter.waker());
        let answer = self.enter(now, |ledger, orders| {
            self.outside().waiters.push(Arc::clone(&waiter));
            let ask = match script.reserves {
                true => Ask::Place,
                false => Ask::Lease,
            };
            let begun = Begun {
                ask,
                ..begun(now, deadline)
            };
            let answer = ledger.request(&asker(), &mut waker, &begun, now, orders);
            if let Answer::Wait { ticket, mailbox } = &answer {
                waiter.queued(*ticket, Arc::clone(mailbox));
            }
            answer
        });
        match answer {
            Answer::Wait { .. } => {}
            Answer::Granted(grant) => {
                waiter.ended(End::Served);
                self.use_and_give_back(grant, now);
            }
            Answer::Placed => {
                waiter.ended(End::Placed);
                self.enter(now, |ledger, orders| ledger.unreserve(now, orders));
            }
            Answer::Refused(error) => {
                let end = End::of(&error);
                waiter.may_end(end);
                waiter.ended(end);
            }
            Answer::NotNow => panic!("it can wait"),
        }
        waiter
    }

    /// A waiter has claimed its grant. It is the only holder, and gives the resource back.
    pub(super) fn use_and_give_back(&self, grant: Token, now: Moment) {
        self.held();
        self.give_back(grant, now);
    }

    pub(super) fn held(&self) {
        let mut outside = self.outside();
        outside.holders += 1;
        assert_eq!(outside.holders, 1, "two leases of a pool of one");
    }

    pub(super) fn give_back(&self, grant: Token, now: Moment) {
        let slot = grant.slot();
        let (good, dropped) = (Condition::Good, Manner::Dropped);
        self.enter(now, |ledger, orders| {
            self.outside().holders -= 1;
            ledger.give_back(slot, grant, good, dropped, now, orders);
        });
    }

    /// The lease ends that was out when the program began.
    pub(super) fn end_lease(&self, now: Moment) {
        let lent = self.outside().lent.take();
        if let Some(grant) = lent {
            self.give_back(grant, now);
        }
    }

    pub(super) fn close(&self, now: Moment) {
        self.enter(now, |ledger, orders| {
            self.each_waiter(|waiter| waiter.may_end(End::Closed));
            ledger.close(now, orders);
        });
    }

    pub(super) fn set_breaker(&self, state: BreakerState, now: Moment) {
        self.enter(now, |ledger, orders| {
            if state == BreakerState::Inactive {
                self.each_waiter(|waiter| waiter.may_end(End::Unavailable));
            }
            ledger.set_breaker(None, state, now, orders);
        });
    }

    /// The alarm goes off if it is due. After that, no waiter and no unclaimed grant is overdue.
    pub(super) fn alarm(&self, now: Moment) {
        self.enter(now, |ledger, orders| {
            let Some(at) = ledger.alarm_at.filter(|at| *at <= now) else {
                return;
            };
            ledger.alarm(at, now, orders);
            quietly(|| {
                let mut queue = ledger.waiters.line();
                assert!(queue.all(|waiter| waiter.deadline > now), "overdue");
                let mut unclaimed = ledger.slots.iter().filter(|slot| slot.is_unclaimed());
                assert!(unclaimed.all(|slot| slot.deadline > now), "overdue grant");
            });
        });
    }

    /// The waiters are woken to do owed work.
    pub(super) fn call_helpers(&self, now: Moment) {
        self.enter(now, |ledger, orders| ledger.call_helpers(orders));
    }

    /// Begins the open that is owed to the first waiter.
    pub(super) fn begin_open(&self) {
        let work = self.enter(self.start, |ledger, _| ledger.next_work());
        let Some(Work {
            slot,
            job: Job::Open,
        }) = work
        else {
            panic!("an open was to be owed: {work:?}");
        };
        self.outside().opening = Some(slot);
    }

    pub(super) fn opened(&self, now: Moment) {
        let slot = self.outside().opening.take();
        if let Some(slot) = slot {
            self.outside().opened += 1;
            self.enter(now, |ledger, orders| {
                ledger.opened(slot, Token(slot), now, orders);
            });
        }
    }

    pub(super) fn open_failed(&self, now: Moment) {
        let slot = self.outside().opening.take();
        let slot = slot.expect("an open was begun");
        self.enter(now, |ledger, orders| {
            self.each_waiter(|waiter| waiter.may_end(End::OpenFailed));
            let error = OpenError::Failed(Cause::from("refused"));
            ledger.open_failed(slot, error, now, orders);
        });
    }
}

pub(super) fn asker() -> Asker {
    Asker {
        site: Location::caller(),
        owner: None,
    }
}

/// A caller that asks now, for the first time.
pub(super) fn begun(now: Moment, deadline: Moment) -> Begun {
    Begun {
        since: now,
        deadline,
        again: false,
        waited: false,
        ask: Ask::Lease,
    }
}

fn wakers_of(orders: Orders<Token>) -> Vec<Waker> {
    let (first, rest) = orders.split();
    let many = rest.map_or_else(Vec::new, |rest| rest.many);
    let others = many.into_iter().filter_map(|one| match one {
        Many::Wake(waker) => Some(waker),
        Many::Spent(_) | Many::Unread(_) | Many::Error(_) => None,
    });
    first.into_iter().chain(others).collect()
}
