//! Calls of the ledger as most tests make them.

use super::*;

/// With orders of their own, and nobody who needs the alarm.
impl<R: Resource> Ledger<R> {
    pub(super) fn asked(
        &mut self,
        asker: Asker,
        waker: &Waker,
        now: Moment,
    ) -> (Answer<R>, Orders<R>) {
        let mut orders = Orders::default();
        let answer = self.request(asker, &mut Some(waker.clone()), None, now, &mut orders);
        (answer, orders.delivered())
    }

    pub(super) fn claimed(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        now: Moment,
    ) -> (Poll<Claim<R>>, Orders<R>) {
        let mut orders = Orders::default();
        let claim = self.claim(ticket, waker, None, now, &mut orders);
        (claim, orders.delivered())
    }

    pub(super) fn timed_out(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        now: Moment,
    ) -> (Poll<Claim<R>>, Orders<R>) {
        let mut orders = Orders::default();
        let pool = Arc::from("pool");
        let claim = self.time_out(ticket, waker, &pool, now, &mut orders);
        (claim, orders.delivered())
    }

    pub(super) fn returned(
        &mut self,
        slot: SlotNo,
        resource: R,
        condition: Condition,
        manner: Manner,
        now: Moment,
    ) -> (crate::ledger::way_out::Returned<R>, Orders<R>) {
        let mut orders = Orders::default();
        let returned = self.give_back(slot, resource, condition, manner, now, &mut orders);
        (returned, orders.delivered())
    }
}

impl<R: Resource> Orders<R> {
    /// What was granted is in its mailbox, and the rest is left to do.
    pub(super) fn delivered(mut self) -> Self {
        if let Some(letter) = self.letter() {
            letter.deliver(|_| panic!("nobody refused anything"));
        }
        self
    }
}

impl Resource for Token {
    type Failure = &'static str;

    fn opened(&mut self, _: SlotNo, _: u64) {}

    fn shelve(&mut self) {}
}
