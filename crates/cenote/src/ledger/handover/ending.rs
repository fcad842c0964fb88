//! The end of a program: the checks after all threads have ended.

use std::mem;
use std::task::Waker;

use super::super::{Answer, HELD_UP_AFTER, Job, Mail};
use super::waiter::End;
use super::world::{Outside, Token, World, asker, begun};
use crate::breaker::BreakerState;
use crate::time::Moment;

impl World {
    /// Every wait has ended and is counted, the resource is in one place, and the next waiters are
    /// served.
    pub(super) fn end(&self) {
        let now = self.later() + HELD_UP_AFTER;
        self.end_lease(now);
        self.opened(now);
        self.do_work(now);
        let waiters = mem::take(&mut self.outside().waiters);
        let ends = |end| {
            let ends = waiters.iter().filter(|waiter| waiter.end() == Some(end));
            ends.count() as u64
        };
        assert!(waiters.iter().all(|waiter| waiter.end().is_some()));
        let status = self.enter(now, |ledger, _| ledger.status(now));
        assert_eq!((status.in_use, status.waiting), (0, 0), "{status:?}");
        assert_eq!(status.reserved, 0, "a place is lost");
        let unserved = ends(End::TimedOut) + ends(End::Left);
        assert_eq!(status.timed_out + status.cancelled, unserved, "{status:?}");
        assert!(status.timed_out >= ends(End::TimedOut), "{status:?}");
        let served = ends(End::Served) + u64::from(self.outside().begins_lent);
        assert_eq!((status.acquired, status.released), (served, served));
        if !self.enter(now, |ledger, _| ledger.is_closed()) {
            self.serve_next(now);
        }
        self.close(now);
        self.do_work(now);
        let Outside { opened, closed, .. } = *self.outside();
        assert_eq!(opened, closed, "a resource is lost");
    }

    /// The next waiters have the seats and the mailboxes of earlier ones, and must not find mail
    /// that was meant for those.
    fn serve_next(&self, now: Moment) {
        self.set_breaker(BreakerState::Active, now);
        let grant = self.acquire(now);
        let places = [(); 3].map(|()| match self.ask(now) {
            Answer::Wait { mailbox, .. } => mailbox,
            answer => panic!("it was to wait: {answer:?}"),
        });
        for mailbox in &places {
            let stale = mailbox.take();
            assert!(stale.is_none(), "stale: {stale:?}");
        }
        self.give_back(grant, now);
        for mailbox in places {
            match mailbox.take() {
                Some(Mail::Grant(grant)) => {
                    drop(mailbox);
                    self.use_and_give_back(grant, now);
                }
                mail => panic!("it was to be served: {mail:?}"),
            }
        }
    }

    fn ask(&self, now: Moment) -> Answer<Token> {
        let mut waker = Some(Waker::noop().clone());
        let begun = begun(now, Moment::NEVER);
        self.enter(now, |ledger, orders| {
            ledger.request(&asker(), &mut waker, &begun, now, orders)
        })
    }

    pub(super) fn acquire(&self, now: Moment) -> Token {
        let answer = self.ask(now);
        self.do_work(now);
        self.held();
        match answer {
            Answer::Granted(grant) => grant,
            Answer::Wait { mailbox, .. } => match mailbox.take() {
                Some(Mail::Grant(grant)) => grant,
                mail => panic!("it was to be served: {mail:?}"),
            },
            answer => panic!("it was to be served: {answer:?}"),
        }
    }

    /// Does all owed work.
    fn do_work(&self, now: Moment) {
        while let Some(work) = self.enter(now, |ledger, _| ledger.next_work()) {
            let slot = work.slot;
            match work.job {
                Job::Open => {
                    self.outside().opening = Some(slot);
                    self.opened(now);
                }
                Job::Close { .. } => {
                    self.outside().closed += 1;
                    self.enter(now, |ledger, orders| {
                        ledger.closed(slot, false, now, orders)
                    });
                }
                Job::Vet { .. } | Job::Clean { .. } => panic!("{work:?} is owed"),
            }
        }
    }
}
