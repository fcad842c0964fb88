//! The world of a program: a real ledger of a pool of one behind its lock, what is outside of it, and the check after every step.

use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use shuttle::thread;

use super::super::{
    Answer, Asker, Condition, Grant, HELD_UP_AFTER, Ledger, Manner, Orders, Resource, SlotNo, Work,
};
use super::order::{Step, about_to, quietly};
use super::waiter::{End, Script, Waiter};
use crate::breaker::BreakerState;
use crate::config::{Config, Limits, OnOpenError};
use crate::moment::Moment;
use crate::sync::Mutex as Lock;

/// The time of a waiter that hurries.
const LIMIT: Duration = Duration::from_millis(10);

/// The resource: it exists once, and cannot be copied.
#[derive(Debug)]
pub(super) struct Token;

impl Resource for Token {
    type Failure = &'static str;

    fn opened(&mut self, _: SlotNo, _: u64) {}
}

pub(super) struct World {
    ledger: Lock<Ledger<Token>>,
    start: Moment,
    outside: Mutex<Outside>,
}

/// What the ledger does not have. Not held over a switch.
#[derive(Default)]
pub(super) struct Outside {
    pub(super) waiters: Vec<Arc<Waiter>>,
    /// Out of the queue, and not woken yet.
    on_their_way: Vec<Waker>,
    /// The lease of the giver.
    lent: Option<Grant<Token>>,
    /// The slot that is being opened.
    pub(super) opening: Option<SlotNo>,
    pub(super) begins_lent: bool,
    holders: usize,
    pub(super) minted: usize,
    pub(super) buried: usize,
}

impl World {
    /// With a lease that is out, or with nothing but room.
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

    /// When the alarm lets the waiters look again.
    pub(super) fn later(&self) -> Moment {
        self.start + HELD_UP_AFTER
    }

    /// One call of the ledger under its lock, the check, and the wake-ups without the lock.
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
                waiter.may_hear(End::TimedOut);
            }
        });
        let mut orders = Orders::default();
        let done = call(&mut ledger, &mut orders);
        let wakers = quietly(|| {
            let wakers = wakers_of(&mut orders);
            self.outside().on_their_way.extend(wakers.iter().cloned());
            self.check(&mut ledger, now);
            drop(ledger);
            wakers
        });
        about_to(Step::Sleep);
        for waker in wakers {
            // The others may come between the delivery and the wake-up.
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

    fn each_waiter(&self, tell: impl Fn(&Waiter)) {
        self.outside()
            .waiters
            .iter()
            .for_each(|waiter| tell(waiter));
    }

    /// After every step, for every waiter between two polls: it is in the queue or has its outcome, and the waker of its last poll is in the
    /// queue, on its way to be woken, or was woken.
    fn check(&self, ledger: &mut Ledger<Token>, now: Moment) {
        let waiters = self.outside().waiters.clone();
        for waiter in waiters {
            let Some((ticket, mailbox)) = waiter.place() else {
                continue;
            };
            let mail = mailbox.take();
            let (has_mail, has_grant) = (mail.is_some(), matches!(mail, Some(Ok(_))));
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
            let is_woken = waiter.is_rung() || holds(&self.outside().on_their_way);
            assert!(is_registered || is_woken, "its last waker is nowhere");
        }
    }

    /// Queues a waiter. A newcomer may be served or refused at once.
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
            let answer = match ledger.join_line(asker(), &mut waker, deadline, now, orders) {
                Some((ticket, mailbox)) => Answer::Wait { ticket, mailbox },
                None => ledger.request(asker(), &mut waker, deadline, None, now, orders),
            };
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
            Answer::Refused(refusal) => {
                let end = End::of(&refusal);
                waiter.may_hear(end);
                waiter.ended(end);
            }
        }
        waiter
    }

    /// A waiter has claimed its grant. It is the one holder, and gives the resource back.
    pub(super) fn use_and_give_back(&self, grant: Grant<Token>, now: Moment) {
        self.held();
        self.give_back(grant, now);
    }

    pub(super) fn held(&self) {
        let mut outside = self.outside();
        outside.holders += 1;
        assert_eq!(outside.holders, 1, "two leases of a pool of one");
    }

    pub(super) fn give_back(&self, grant: Grant<Token>, now: Moment) {
        let Grant { slot, resource, .. } = grant;
        let (good, dropped) = (Condition::Good, Manner::Dropped);
        self.enter(now, |ledger, orders| {
            self.outside().holders -= 1;
            ledger.give_back(slot, resource, good, dropped, now, orders);
        });
    }

    /// The giver ends its lease.
    pub(super) fn end_lease(&self, now: Moment) {
        let lent = self.outside().lent.take();
        if let Some(grant) = lent {
            self.give_back(grant, now);
        }
    }

    pub(super) fn close(&self, now: Moment) {
        self.enter(now, |ledger, orders| {
            self.each_waiter(|waiter| waiter.may_hear(End::Closed));
            *orders = ledger.close(now).1;
        });
    }

    pub(super) fn set_breaker(&self, state: BreakerState, now: Moment) {
        self.enter(now, |ledger, orders| {
            if state == BreakerState::Inactive {
                self.each_waiter(|waiter| waiter.may_hear(End::Unavailable));
            }
            *orders = ledger.set_breaker(None, state, now).1;
        });
    }

    /// The alarm goes off, if it is due. After that, no deadline before `now` is left.
    pub(super) fn alarm(&self, now: Moment) {
        self.enter(now, |ledger, orders| {
            let Some(at) = ledger.alarm_at.filter(|at| *at <= now) else {
                return;
            };
            *orders = ledger.alarm(at, now).1;
            quietly(|| {
                let mut line = ledger.waiters.line();
                assert!(line.all(|waiter| waiter.deadline > now), "overdue");
                let mut unclaimed = ledger.slots.iter().filter(|slot| slot.is_unclaimed());
                assert!(unclaimed.all(|slot| slot.deadline > now), "overdue grant");
            });
        });
    }

    /// The waiters are asked to do owed work.
    pub(super) fn call_helpers(&self, now: Moment) {
        self.enter(now, |ledger, orders| *orders = ledger.call_helpers());
    }

    /// An open is begun for the first waiter.
    pub(super) fn begin_open(&self) {
        let work = self.enter(self.start, |ledger, _| ledger.next_work());
        let Some(Work::Open { slot }) = work else {
            panic!("{work:?} is owed, and not an open");
        };
        self.outside().opening = Some(slot);
    }

    pub(super) fn opened(&self, now: Moment) {
        let slot = self.outside().opening.take();
        if let Some(slot) = slot {
            self.outside().minted += 1;
            self.enter(now, |ledger, orders| {
                *orders = ledger.opened(slot, Token, None, now).1;
            });
        }
    }

    pub(super) fn open_failed(&self, now: Moment) {
        let slot = self.outside().opening.take();
        let slot = slot.expect("an open was begun");
        self.enter(now, |ledger, orders| {
            self.each_waiter(|waiter| waiter.may_hear(End::OpenFailed));
            *orders = ledger.open_failed(slot, "refused", now).1;
        });
    }
}

pub(super) fn asker() -> Asker {
    Asker {
        site: Location::caller(),
        owner: None,
    }
}

fn wakers_of(orders: &mut Orders<Token>) -> Vec<Waker> {
    let mut wakers: Vec<_> = orders.first_waker().into_iter().collect();
    if let Some(mut more) = orders.more_wakers() {
        wakers.append(&mut more.wakers);
    }
    wakers
}
