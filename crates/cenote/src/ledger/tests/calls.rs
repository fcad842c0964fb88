//! Calls of the ledger as most tests make them.

use super::*;

/// With orders of their own, and nobody who needs the alarm.
impl<R, F: Clone> Ledger<R, F> {
    pub(super) fn asked(
        &mut self,
        asker: Asker,
        waker: &Waker,
        now: Moment,
    ) -> (Answer<R, F>, Orders) {
        let mut orders = Orders::default();
        let answer = self.request(asker, waker, None, now, &mut orders);
        (answer, orders)
    }

    pub(super) fn claimed(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        now: Moment,
    ) -> (Poll<Claim<R, F>>, Orders) {
        let mut orders = Orders::default();
        let claim = self.claim(ticket, waker, None, now, &mut orders);
        (claim, orders)
    }

    pub(super) fn returned(
        &mut self,
        slot: SlotNo,
        resource: R,
        condition: Condition,
        manner: Manner,
        now: Moment,
    ) -> (crate::ledger::way_out::Returned<R>, Orders) {
        let mut orders = Orders::default();
        let returned = self.give_back(slot, resource, condition, manner, now, &mut orders);
        (returned, orders)
    }
}
