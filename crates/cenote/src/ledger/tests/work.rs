//! The rest of the world: the work it does for the ledger, what is done to the whole pool, and the
//! end.

use std::task::Poll;

use super::herd::Ends;
use super::*;
use crate::ledger::AfterFailure;

impl World {
    pub(super) fn take_work(&mut self) {
        if let Some(work) = self.ledger.next_work() {
            self.take_up(work);
        }
    }

    pub(super) fn take_up(&mut self, work: Work<Token>) {
        if let Work::Vet { resource, .. }
        | Work::Clean { resource, .. }
        | Work::Close { resource, .. } = &work
        {
            assert!(
                self.inside.remove(resource),
                "I4: work on what it did not have"
            );
        }
        self.jobs.push(work);
    }

    pub(super) fn finish_work(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let job = self.jobs.swap_remove(self.rng.usize(0..self.jobs.len()));
        let luck = self.rng.u8(0..10);
        match job {
            Work::Open { slot } => self.open(slot, luck),
            Work::Vet { slot, resource, .. } | Work::Clean { slot, resource, .. } => match luck {
                0 => {
                    let orders = self.ledger.lost(slot, self.now);
                    self.obey(orders);
                }
                1 | 2 => self.judged(slot, resource, Outcome::Unfit(Reason::FailedCheck)),
                3 => self.judged(slot, resource, Outcome::Unfit(Reason::FailedClean)),
                4 => self.judged(slot, resource, Outcome::Alive),
                _ => self.judged(slot, resource, Outcome::Fit),
            },
            Work::Close { slot, .. } => {
                let orders = if luck == 0 {
                    self.ledger.lost(slot, self.now)
                } else {
                    self.ledger.closed(slot, self.now)
                };
                self.obey(orders);
            }
        }
    }

    fn open(&mut self, slot: SlotNo, luck: u8) {
        let (wanted, orders) = self.ledger.may_open(slot, self.now);
        self.obey(orders);
        match luck {
            _ if !wanted => {}
            0 => {
                let orders = self.ledger.lost(slot, self.now);
                self.obey(orders);
            }
            1..=3 => {
                let (after, orders) = self.ledger.open_failed(slot, "refused", self.now);
                self.obey(orders);
                if let AfterFailure::Retry(_) = after {
                    self.jobs.push(Work::Open { slot });
                }
            }
            _ => {
                self.minted += 1;
                self.inside.insert(self.minted);
                let (_, orders) = self.ledger.opened(slot, self.minted, None, self.now);
                self.obey(orders);
            }
        }
    }

    fn judged(&mut self, slot: SlotNo, token: Token, outcome: Outcome) {
        self.inside.insert(token);
        let orders = self.ledger.judged(slot, token, outcome, self.now);
        self.obey(orders);
    }

    /// Looks at an idle resource, and keeps it or not.
    pub(super) fn retain(&mut self) {
        let idle = self.ledger.idle();
        if idle.is_empty() {
            return;
        }
        let (slot, id) = idle[self.rng.usize(0..idle.len())];
        let token = self.ledger.look_at(slot, id, self.now).expect("it is idle");
        assert!(self.inside.contains(&token));
        if self.rng.bool() {
            let orders = self.ledger.put_back(slot, token, self.now);
            self.obey(orders);
        } else {
            self.judged(slot, token, Outcome::Unfit(Reason::Refused));
        }
        assert_eq!(
            self.ledger.look_at(slot, id + 1_000_000, self.now),
            None,
            "another resource is not this one"
        );
    }

    pub(super) fn warm(&mut self) {
        let failed = self.ledger.status(self.now).open_failed;
        let (warm, orders) = self.ledger.warm(failed, self.now);
        self.obey(orders);
        if self.closed {
            assert!(matches!(warm, Poll::Ready(Err(Cold::Closed))), "{warm:?}");
        }
    }

    pub(super) fn upkeep(&mut self) {
        let is_held_up = self.ledger.stand_in_at().is_some_and(|at| at <= self.now);
        let (upkeep, orders) = self.ledger.upkeep(self.now);
        self.obey(orders);
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
        let (before, orders) = self.ledger.set_breaker(None, next, self.now);
        self.obey(orders);
        if before != next && next == Inactive {
            assert!(self.is_line_empty(), "tripped, and a waiter was not told");
            let mut granted = self.callers.iter().filter(|caller| caller.has_grant());
            assert!(granted.next().is_none(), "tripped, and a grant was left");
        }
    }

    pub(super) fn resize(&mut self) {
        let limits = &self.ledger.limits;
        let least = limits.min_size.max(limits.min_idle).max(1);
        let max_size = self.rng.usize(least..=least + 4);
        let (_, orders) = self.ledger.resize(max_size, self.now);
        self.obey(orders);
    }

    pub(super) fn close(&mut self) {
        let (was_open, orders) = self.ledger.close(self.now);
        assert_eq!(was_open, !self.closed);
        self.closed = true;
        self.obey(orders);
        for caller in &self.callers {
            let is_refused = caller.peek(|mail| matches!(mail, Some(Err(_))));
            assert!(is_refused, "closed, and a waiter was not told");
        }
    }

    pub(super) fn obey(&mut self, mut orders: Orders<Token>) {
        assert_eq!(
            (orders.owed, orders.waste),
            (!self.ledger.owed.is_empty(), !self.ledger.waste.is_empty()),
            "work or waste was kept secret"
        );
        if let Some(at) = orders.alarm {
            assert_eq!(self.ledger.alarm_at, Some(at));
            self.alarms.insert(at);
        }
        orders.wake_all();
        self.ledger.take_waste();
    }

    /// The faults stop: everything must be back to full service.
    pub(super) fn recover(&mut self) {
        if self.closed {
            return;
        }
        self.clear_trays();
        let orders = self.ledger.resume(self.now);
        self.obey(orders);
        let orders = self.ledger.unpause(self.now);
        self.obey(orders);
        let (_, orders) = self
            .ledger
            .set_breaker(None, BreakerState::Active, self.now);
        self.obey(orders);
        self.drain();
        // The longest back-off.
        self.now += Duration::from_secs(30);
        let max_size = self.ledger.status(self.now).max_size;
        for _ in 0..max_size + 1 {
            self.request(Moment::NEVER);
            self.settle();
        }
        let (granted, waiting) = (self.leases.len(), self.callers.len());
        let most = self.ledger.limits.max_waiters.is_none_or(|most| most > 0);
        assert_eq!(granted, max_size, "a slot was lost");
        assert_eq!(
            waiting,
            usize::from(most),
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
        while let Some(lent) = self.leases.pop() {
            self.come_back(lent, Condition::Good);
        }
        self.settle();
    }

    /// All work is done, and well.
    fn settle(&mut self) {
        loop {
            while let Some(work) = self.ledger.next_work() {
                self.take_up(work);
            }
            let Some(job) = self.jobs.pop() else { break };
            self.clear_trays();
            match job {
                Work::Open { slot } => self.open(slot, 9),
                Work::Vet { slot, resource, .. } | Work::Clean { slot, resource, .. } => {
                    self.judged(slot, resource, Outcome::Fit);
                }
                Work::Close { slot, .. } => {
                    let orders = self.ledger.closed(slot, self.now);
                    self.obey(orders);
                }
            }
            self.check();
            let callers = std::mem::take(&mut self.callers);
            let ended = |caller: &Caller| caller.peek(|mail| mail.is_some());
            let (ended, waiting) = callers.into_iter().partition(ended);
            self.callers = waiting;
            let ended: Vec<_> = ended;
            ended.into_iter().for_each(|caller| self.poll(caller));
        }
    }

    pub(super) fn end(&mut self) {
        self.clear_trays();
        if !self.closed {
            self.close();
        }
        for caller in std::mem::take(&mut self.callers) {
            self.poll(caller);
        }
        self.drain();
        let status = self.ledger.status(self.now);
        assert!(
            self.ledger.is_drained(),
            "closed, no lease is out, and something is left: {status:?}"
        );
        assert!(self.inside.is_empty(), "a resource was never closed");
        assert_eq!(status.opened, status.closed.total() + status.detached);
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
