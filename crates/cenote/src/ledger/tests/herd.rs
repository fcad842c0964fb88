//! How the callers of a random history wait: some have all the time, and the alarm wakes the others.

use super::*;

impl World {
    /// When the time of somebody is over who asks now, if the alarm is to wake them.
    pub(super) fn patience(&mut self) -> Option<Moment> {
        let limit = Duration::from_millis(self.rng.u64(0..3_000));
        self.rng.bool().then_some(self.now + limit)
    }

    /// It goes off, if it is due. Whom it wakes may be kept from running.
    pub(super) fn alarm(&mut self) {
        let Some(at) = self.ledger.alarm_at.filter(|at| *at <= self.now) else {
            return;
        };
        let (next, orders) = self.ledger.alarm(at, self.now);
        assert!(next.is_none_or(|next| next > self.now), "it never rests");
        let due = self.obey_and_see(orders);
        for joined in due {
            let place = self.callers.iter().position(|it| it.joined == joined);
            if let Some(place) = place.filter(|_| self.rng.u8(0..4) > 0) {
                let caller = self.callers.remove(place);
                self.claim(caller);
            }
        }
    }

    /// The numbers of those who were woken to look again, though nothing is decided. They are as good as not woken until it is.
    pub(super) fn obey_and_see(&mut self, orders: Orders<Token>) -> Vec<u64> {
        self.obey_orders(orders);
        let mut due = Vec::new();
        for caller in self.callers.iter().filter(|it| it.until.is_some()) {
            if !self.ledger.queue.waiter(caller.ticket).is_in_line() {
                caller.woken.0.fetch_or(caller.due.get(), Ordering::Relaxed);
            } else if caller.woken.0.swap(false, Ordering::Relaxed) {
                caller.due.set(true);
                due.push(caller.joined);
            }
        }
        due
    }

    /// Was it told that its time is over?
    pub(super) fn is_over(&self, caller: &Caller) -> bool {
        self.ledger.queue.at(caller.ticket.seat).fate == Fate::TimedOut
    }

    /// By the mailbox, or by the ledger.
    pub(super) fn claim(&mut self, caller: Caller) {
        if self.rng.bool() {
            match caller.mailbox.claim(caller.ticket.serial) {
                None => {}
                Some(Mail::Grant(grant)) => {
                    self.ledger.note_claim(caller.ticket, grant.slot);
                    return self.lent(grant);
                }
                Some(Mail::TimeIsUp(_)) => return assert!(caller.is_late(self.now)),
            }
        }
        if caller.is_late(self.now) {
            return self.time_out(caller);
        }
        let waker = Waker::from(Arc::clone(&caller.woken));
        let mut orders = Orders::default();
        let claim = self
            .ledger
            .claim(caller.ticket, &waker, caller.until, self.now, &mut orders);
        self.obey(orders.delivered());
        match claim {
            Poll::Pending => {
                // Where the order is exact, one who looks may be given what is idle behind the one that is being checked.
                let granted = self.ledger.queue.waiter(caller.ticket).fate == Fate::Granted;
                assert_eq!(caller.is_woken(), granted, "woken for nothing");
                caller.due.set(false);
                self.callers.push(caller);
                self.callers.sort_by_key(|caller| caller.joined);
            }
            Poll::Ready(claim) => {
                assert!(caller.is_woken(), "decided, and nobody told it");
                self.heard(claim);
            }
        }
    }

    pub(super) fn time_out(&mut self, caller: Caller) {
        let was_over = self.is_over(&caller);
        let (claim, orders) = self
            .ledger
            .timed_out(caller.ticket, Waker::noop(), self.now);
        self.obey(orders);
        let Poll::Ready(claim) = claim else {
            panic!("what was granted is there");
        };
        assert_eq!(
            matches!(claim, Err(Refusal::TimedOut(_))),
            was_over || !caller.is_woken(),
            "what was granted at the last moment is still theirs"
        );
        self.heard(claim);
    }
}

impl Caller {
    fn is_late(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}
