//! The work of a random history, the operations on the whole pool, and the end.

use std::mem;
use std::task::Poll;

use super::history::World;
use super::history_callers::{Caller, Ends};
use super::*;
use crate::error::WarmError;

impl World {
    pub(super) fn begin_work(&mut self) {
        if let Some(work) = self.ledger.next_work() {
            self.begin(work);
        }
    }

    pub(super) fn begin(&mut self, work: Work<Token>) {
        if let Job::Vet { resource, .. }
        | Job::Clean { resource, .. }
        | Job::Close { resource, .. } = &work.job
        {
            assert!(
                self.inside.remove(resource),
                "I4: work on a resource that the ledger did not have"
            );
        }
        self.begun.push(work);
    }

    pub(super) fn finish_work(&mut self) {
        if self.begun.is_empty() {
            return;
        }
        let nth = self.rng.usize(0..self.begun.len());
        let Work { slot, job } = self.begun.swap_remove(nth);
        let luck = self.rng.u8(0..10);
        match job {
            Job::Open => self.open(slot, luck),
            Job::Vet { resource, .. } | Job::Clean { resource, .. } if luck < 4 => match luck {
                0 => self.lose(slot),
                3 => self.judged(slot, resource, Outcome::Unfit(CloseReason::FailedClean)),
                _ => self.judged(slot, resource, Outcome::Unfit(CloseReason::FailedCheck)),
            },
            Job::Vet { resource, ask, .. } => self.judged(slot, resource, vetted(ask)),
            Job::Clean { resource, .. } => self.judged(slot, resource, Outcome::Fit),
            Job::Close { .. } if luck == 0 => self.lose(slot),
            Job::Close { .. } => self.closed(slot),
        }
    }

    fn open(&mut self, slot: SlotNo, luck: u8) {
        if !self.call(|ledger, now, orders| ledger.may_open(slot, now, orders)) {
            return;
        }
        match luck {
            0 => self.lose(slot),
            1..=3 => {
                let after = self
                    .call(|ledger, now, orders| ledger.open_failed(slot, refused(), now, orders));
                if let AfterFailure::Retry(_) = after {
                    let job = Job::Open;
                    self.begun.push(Work { slot, job });
                }
            }
            _ => {
                self.minted += 1;
                let token = Token::new(self.minted);
                self.inside.insert(token);
                self.call(|ledger, now, orders| ledger.opened(slot, token, now, orders));
            }
        }
    }

    /// The task that works for this slot is dropped.
    fn lose(&mut self, slot: SlotNo) {
        self.call(|ledger, now, orders| ledger.lost(slot, now, orders));
    }

    fn closed(&mut self, slot: SlotNo) {
        self.call(|ledger, now, orders| ledger.closed(slot, false, now, orders));
    }

    fn judged(&mut self, slot: SlotNo, token: Token, outcome: Outcome) {
        self.inside.insert(token);
        self.call(|ledger, now, orders| ledger.judged(slot, token, outcome, now, orders));
    }

    /// Takes an idle resource out, and keeps it or not.
    pub(super) fn retain(&mut self) {
        let idle = self.ledger.idle();
        if idle.is_empty() {
            return;
        }
        let (slot, id) = idle[self.rng.usize(0..idle.len())];
        let token = self.ledger.look_at(slot, id, self.now).expect("it is idle");
        assert!(self.inside.contains(&token));
        if self.rng.bool() {
            self.call(|ledger, now, orders| ledger.put_back(slot, token, now, orders));
        } else {
            self.judged(slot, token, Outcome::Unfit(CloseReason::Refused));
        }
        assert_eq!(
            self.ledger.look_at(slot, id + 1_000_000, self.now),
            None,
            "the slot holds another resource"
        );
    }

    pub(super) fn warm(&mut self) {
        let failed = self.ledger.status(self.now).open_failed;
        let warm = self.call(|ledger, now, orders| ledger.warm(failed, now, orders));
        let is_refused = matches!(warm, Poll::Ready(Err(WarmError::Closed)));
        assert_eq!(is_refused, self.closed, "{warm:?}");
    }

    pub(super) fn upkeep(&mut self) {
        let is_held_up = self.ledger.stand_in_at().is_some_and(|at| at <= self.now);
        let upkeep = self.call(|ledger, now, orders| {
            ledger.stand_in_for_alarm(now, orders);
            ledger.upkeep(now, orders)
        });
        assert!(
            upkeep.next.is_none_or(|next| next > self.now),
            "upkeep would spin"
        );
        if is_held_up {
            self.check_deadlines();
        }
    }

    pub(super) fn change_breaker(&mut self) {
        use BreakerState::{Active, Inactive, Recovering};
        let next = [Active, Active, Inactive, Recovering][self.rng.usize(0..4)];
        let before = self.set_breaker(next);
        if before != next && next == Inactive {
            assert!(self.is_queue_empty(), "tripped, and a waiter was not told");
            let mut granted = self.callers.iter().filter(|caller| caller.has_grant());
            assert!(granted.next().is_none(), "tripped, and a grant was left");
        }
    }

    fn set_breaker(&mut self, state: BreakerState) -> BreakerState {
        self.call(|ledger, now, orders| ledger.set_breaker(None, state, now, orders))
    }

    pub(super) fn resize(&mut self) {
        let limits = &self.ledger.limits;
        let least = limits.min_size.max(limits.min_idle).max(1);
        let max_size = self.rng.usize(least..=least + 4);
        self.call(|ledger, now, orders| ledger.resize(max_size, now, orders));
    }

    pub(super) fn close(&mut self) {
        let was_open = self.call(Ledger::close);
        assert_eq!(was_open, !self.closed);
        self.closed = true;
        for caller in &self.callers {
            let is_told = caller.has_mail() && !caller.has_grant();
            assert!(is_told, "closed, and a waiter was not told");
        }
    }

    /// The faults stop: the pool must serve as many callers as it has room for.
    pub(super) fn recover(&mut self) {
        if self.closed {
            return;
        }
        self.clear_trays();
        self.call(Ledger::resume);
        self.call(Ledger::unpause);
        self.set_breaker(BreakerState::Active);
        self.drain();
        // The longest back-off.
        self.now += Duration::from_secs(30);
        let max_size = self.ledger.status(self.now).max_size;
        for _ in 0..max_size + 1 {
            self.request(Moment::NEVER);
            self.settle();
        }
        let (granted, waiting) = (self.leases.len(), self.callers.len());
        let may_wait = self.ledger.limits.max_waiters.is_none_or(|most| most > 0);
        assert_eq!(granted, max_size, "a slot was lost");
        assert_eq!(
            waiting,
            usize::from(may_wait),
            "one more than `max_size` was served"
        );
        self.check();
    }

    /// Every caller leaves, and every lease ends.
    fn drain(&mut self) {
        self.clear_trays();
        while let Some(caller) = self.callers.pop() {
            self.withdraw(caller);
        }
        while self.permits > 0 {
            self.permits -= 1;
            self.call(Ledger::unreserve);
        }
        while let Some(lent) = self.leases.pop() {
            self.come_back(lent, Condition::Good);
        }
        self.settle();
    }

    /// All work is done, and succeeds.
    fn settle(&mut self) {
        loop {
            while let Some(work) = self.ledger.next_work() {
                self.begin(work);
            }
            let Some(Work { slot, job }) = self.begun.pop() else {
                break;
            };
            self.clear_trays();
            match job {
                Job::Open => self.open(slot, 9),
                Job::Vet { resource, ask, .. } => self.judged(slot, resource, vetted(ask)),
                Job::Clean { resource, .. } => self.judged(slot, resource, Outcome::Fit),
                Job::Close { .. } => self.closed(slot),
            }
            self.check();
            let callers = mem::take(&mut self.callers);
            let (ended, waiting): (Vec<_>, _) = callers.into_iter().partition(Caller::has_mail);
            self.callers = waiting;
            ended.into_iter().for_each(|caller| self.poll(caller));
        }
    }

    /// The pool closes, and nothing may be left.
    pub(super) fn end(&mut self) {
        self.clear_trays();
        if !self.closed {
            self.close();
        }
        for caller in mem::take(&mut self.callers) {
            self.poll(caller);
        }
        self.drain();
        let status = self.ledger.status(self.now);
        assert!(
            self.ledger.is_drained(),
            "closed, no lease is out, and something is left: {status:?}"
        );
        assert!(self.inside.is_empty(), "a resource was never closed");
        assert_eq!(status.opened, status.closes.total() + status.detached);
        let Ends {
            waits,
            served,
            timed_out,
            refused,
            cancelled,
        } = self.ends;
        assert_eq!(waits, served + timed_out + refused + cancelled);
    }
}

/// The outcome of a check that went well, as the driver reports it.
fn vetted(ask: bool) -> Outcome {
    match ask {
        true => Outcome::Fit,
        false => Outcome::Alive,
    }
}
