//! The rest of the world: the work it does for the ledger, what is done to the whole pool, the checks, and the end.

use super::*;
use crate::ledger::AfterFailure;

impl World {
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

    pub(super) fn look(&mut self) {
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

    pub(super) fn upkeep(&mut self) {
        let (upkeep, orders) = self.ledger.upkeep(self.now);
        self.obey(orders);
        assert!(
            upkeep.next.is_none_or(|next| next > self.now),
            "upkeep would spin"
        );
    }

    pub(super) fn resize(&mut self) {
        let least = self
            .ledger
            .limits
            .min_size
            .max(self.ledger.limits.min_idle)
            .max(1);
        let max_size = self.rng.usize(least..=least + 4);
        let (_, orders) = self.ledger.resize(max_size, self.now);
        self.obey(orders);
    }

    pub(super) fn close(&mut self) {
        let (was_open, orders) = self.ledger.close(self.now);
        assert_eq!(was_open, !self.closed);
        self.closed = true;
        self.obey(orders);
        assert!(
            self.callers.iter().all(Caller::is_woken),
            "closed, and somebody was not told"
        );
    }

    pub(super) fn obey(&mut self, orders: Orders<Token>) {
        self.obey_and_see(orders);
    }

    pub(super) fn obey_orders(&mut self, mut orders: Orders<Token>) {
        assert_eq!(
            orders.owed,
            !self.ledger.owed.is_empty(),
            "owed work was kept secret"
        );
        orders.call_all(|_| panic!("nobody refused anything"));
    }

    pub(super) fn check(&mut self) {
        self.ledger.assert_sound(self.now);
        let status = self.ledger.status(self.now);

        let occupied = status.total + status.closing;
        self.cap = self.cap.min(occupied).max(status.max_size);
        assert!(
            occupied <= self.cap,
            "I1: {occupied} exist, of {}",
            self.cap
        );
        assert!(
            status.opening <= self.ledger.limits.max_opening,
            "more opens at once than allowed"
        );

        let slots = 0..self.ledger.slots.len();
        let unclaimed = slots.filter(|slot| self.ledger.is_unclaimed(*slot)).count();
        assert_eq!(
            status.in_use,
            self.leases.len() + self.lying() + unclaimed,
            "I4: leased is not who holds plus who is about to"
        );
        let woken = self
            .callers
            .iter()
            .filter(|caller| caller.is_woken())
            .count();
        assert!(unclaimed <= woken, "I7: granted to nobody");
        assert_eq!(
            status.waiting,
            self.callers.len() - woken,
            "I3: the line is not who waits"
        );
        let last_woken = self
            .callers
            .iter()
            .filter(|caller| caller.is_woken() && !self.is_over(caller))
            .map(|caller| caller.joined)
            .max();
        let first_waiting = self
            .callers
            .iter()
            .filter(|caller| !caller.is_woken())
            .map(|caller| caller.joined)
            .min();
        if let (Some(woken), Some(waiting)) = (last_woken, first_waiting) {
            assert!(
                woken < waiting,
                "I3: somebody was served before one who came first"
            );
        }

        let here = self
            .ledger
            .slots
            .iter()
            .filter(|slot| slot.resource.is_some())
            .count();
        let owed = self
            .ledger
            .owed
            .iter()
            .filter(|work| !matches!(work, Work::Open { .. }))
            .count();
        assert_eq!(
            self.inside.len(),
            here + owed + unclaimed,
            "I4: a resource was lost or doubled"
        );

        let s = &status;
        let b = &self.before;
        let grew = [
            (b.acquired, s.acquired),
            (b.waited, s.waited),
            (b.released, s.released),
            (b.opened, s.opened),
            (b.open_failed, s.open_failed),
            (b.timed_out, s.timed_out),
            (b.cancelled, s.cancelled),
            (b.leaked, s.leaked),
            (b.closed.total(), s.closed.total()),
        ];
        assert!(
            grew.iter().all(|(before, now)| before <= now),
            "a counter went backwards"
        );
        let alive = (s.total - s.opening) as u64;
        assert_eq!(
            s.opened,
            s.closed.total() + s.detached + alive,
            "opened is not closed, detached or alive"
        );
        self.before = status;
    }

    /// The faults stop: everything must be back to full service.
    pub(super) fn recover(&mut self) {
        if self.closed {
            return;
        }
        self.fetch();
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
            self.request();
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

    /// Everybody goes home.
    fn drain(&mut self) {
        self.fetch();
        while let Some(caller) = self.callers.pop() {
            self.withdraw(caller);
        }
        while let Some((slot, token)) = self.leases.pop() {
            self.inside.insert(token);
            let (_, orders) =
                self.ledger
                    .returned(slot, token, Condition::Good, Manner::Dropped, self.now);
            self.obey(orders);
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
            self.fetch();
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
            let woken: Vec<_> = self.callers.extract_woken();
            woken.into_iter().for_each(|caller| self.claim(caller));
        }
    }

    pub(super) fn end(&mut self) {
        self.fetch();
        if !self.closed {
            self.close();
        }
        for caller in std::mem::take(&mut self.callers) {
            self.claim(caller);
        }
        self.drain();
        let status = self.ledger.status(self.now);
        assert!(
            self.ledger.is_drained(),
            "closed, everybody is home, and something is left: {status:?}"
        );
        assert!(self.inside.is_empty(), "a resource was never closed");
        assert_eq!(status.opened, status.closed.total() + status.detached);
    }
}

trait ExtractWoken {
    fn extract_woken(&mut self) -> Vec<Caller>;
}

impl ExtractWoken for Vec<Caller> {
    fn extract_woken(&mut self) -> Vec<Caller> {
        let (woken, waiting) = std::mem::take(self).into_iter().partition(Caller::is_woken);
        *self = waiting;
        woken
    }
}
