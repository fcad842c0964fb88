//! The end of a program: what must hold when all have gone home.

use std::mem;
use std::task::Waker;

use super::super::{Answer, Grant, HELD_UP_AFTER, Work};
use super::waiter::End;
use super::world::{Outside, Token, World, asker};
use crate::breaker::BreakerState;
use crate::moment::Moment;

impl World {
    /// Every wait has ended and is counted, the resource is in one place, and the next waiters are served.
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
        let Outside { minted, buried, .. } = *self.outside();
        assert_eq!(minted, buried, "a resource is lost");
    }

    /// The next waiters, in the seats and with the mailboxes of those before, hear nothing that was meant for others.
    fn serve_next(&self, now: Moment) {
        self.set_breaker(BreakerState::Active, now);
        let grant = self.acquire(now);
        let places = [(); 3].map(|()| match self.ask(now) {
            Answer::Wait { mailbox, .. } => mailbox,
            answer => panic!("everything is out: {answer:?}"),
        });
        for mailbox in &places {
            let stale = mailbox.take();
            assert!(stale.is_none(), "stale: {stale:?}");
        }
        self.give_back(grant, now);
        for mailbox in places {
            match mailbox.take() {
                Some(Ok(grant)) => {
                    drop(mailbox);
                    self.use_and_give_back(grant, now);
                }
                mail => panic!("it was to be served: {mail:?}"),
            }
        }
    }

    fn ask(&self, now: Moment) -> Answer<Token> {
        let mut waker = Some(Waker::noop().clone());
        self.enter(now, |ledger, orders| {
            ledger.request(asker(), &mut waker, Moment::NEVER, None, now, orders)
        })
    }

    pub(super) fn acquire(&self, now: Moment) -> Grant<Token> {
        let answer = self.ask(now);
        self.do_work(now);
        self.held();
        match answer {
            Answer::Granted(grant) => grant,
            Answer::Wait { mailbox, .. } => match mailbox.take() {
                Some(Ok(grant)) => grant,
                mail => panic!("it was to be served: {mail:?}"),
            },
            Answer::Refused(refusal) => panic!("{refusal:?}"),
        }
    }

    /// Does all that is owed.
    fn do_work(&self, now: Moment) {
        while let Some(work) = self.enter(now, |ledger, _| ledger.next_work()) {
            match work {
                Work::Open { slot } => {
                    self.outside().opening = Some(slot);
                    self.opened(now);
                }
                Work::Close { slot, .. } => {
                    self.outside().buried += 1;
                    self.enter(now, |ledger, orders| *orders = ledger.closed(slot, now));
                }
                work => panic!("{work:?} is owed"),
            }
        }
    }
}
