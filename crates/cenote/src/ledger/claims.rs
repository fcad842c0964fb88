//! The end of a wait: a claim, a timeout, a withdrawal, and what was granted to one who is gone.

use std::task::{Poll, Waker};

use super::answers::{Claim, Grant, LastWord, Refusal};
use super::slot::SlotNo;
use super::{Fate, Ledger, Orders, Resource, Ticket};
use crate::moment::Moment;

impl<R: Resource, F: Clone> Ledger<R, F> {
    /// Has the waiter's fate been decided? If not, `waker` is woken when it is, or at `look_at`. The ticket ends with an answer.
    pub(crate) fn claim(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        look_at: Option<Moment>,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Poll<Claim<R, F>> {
        if self.queue.waiter(ticket).is_in_line() {
            // What was on its way may be held up by now.
            self.serve(now, orders);
            self.wait_on(ticket, waker, look_at, orders);
        }
        let claim = match self.queue.waiter(ticket).is_in_line() {
            true => Poll::Pending,
            false => self.hear(ticket, waker, now, orders),
        };
        self.end(orders, now);
        claim
    }

    /// What was granted for this ticket was claimed from its mailbox. Need not be said before the lease ends.
    pub(crate) fn note_claim(&mut self, ticket: Ticket, slot: SlotNo) {
        let slot = &mut self.slots[slot];
        slot.seat = None;
        self.queue.leave(ticket, slot.since);
    }

    fn wait_on(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        look_at: Option<Moment>,
        orders: &mut Orders<R>,
    ) {
        let waiter = self.queue.waiter(ticket);
        if !waiter.is_in_line() {
            return;
        }
        let known = waiter.waker.as_ref();
        if !known.is_some_and(|known| known.will_wake(waker)) {
            orders.spend(waiter.waker.replace(waker.clone()));
        }
        waiter.look_at = look_at;
        self.set_alarm(look_at, orders);
    }

    /// The waiter's time is over. What was granted at the last moment is still theirs, and may be on its way; otherwise the ticket ends with a
    /// report.
    pub(crate) fn time_out(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        now: Moment,
    ) -> (Poll<LastWord<R, F>>, Orders<R>) {
        let mut orders = Orders::default();
        let claim = if self.queue.waiter(ticket).is_in_line() {
            self.counts.timed_out += 1;
            let report = self.report(ticket, now);
            self.leave(ticket, now, &mut orders);
            Poll::Ready(Err(report))
        } else {
            self.hear(ticket, waker, now, &mut orders).map(Ok)
        };
        (claim, self.finish(orders, now))
    }

    /// The waiter is gone. What it was about to get goes to the next.
    pub(crate) fn withdraw(&mut self, ticket: Ticket, now: Moment) -> Orders<R> {
        let mut orders = Orders::default();
        self.counts.cancelled += 1;
        let waiter = self.queue.waiter(ticket);
        self.waste.extend(waiter.failure.take());
        if waiter.fate != Fate::Granted {
            self.leave(ticket, now, &mut orders);
        } else if let Some(grant) = waiter.mailbox.refuse(ticket.serial) {
            let slot = grant.slot;
            self.leave(ticket, self.latest_of(slot, now), &mut orders);
            self.slots[slot].take_back(grant);
            self.place(slot, now, &mut orders);
        } else {
            // Whoever brings it will say so.
            waiter.fate = Fate::Gone;
        }
        self.finish(orders, now)
    }

    /// What was granted was refused when it came: its waiter is gone, or was sent away.
    pub(crate) fn refused(&mut self, grant: Grant<R>, now: Moment) -> Orders<R> {
        let mut orders = Orders::default();
        let slot = grant.slot;
        match self.slots[slot].seat {
            Some(seat) if self.queue.at(seat).fate == Fate::Granted => {
                let fate = match self.closed {
                    true => Fate::Closed,
                    false => Fate::Unavailable,
                };
                self.send_away(seat, fate, grant);
            }
            seat => {
                let until = self.latest_of(slot, now);
                self.slots[slot].take_back(grant);
                if let Some(seat) = seat {
                    self.queue.clear(seat, until);
                }
            }
        }
        self.place(slot, now, &mut orders);
        self.finish(orders, now)
    }

    /// Ends a ticket whose fate is decided, unless what was granted is still on its way: `waker` is woken when it comes.
    fn hear(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Poll<Claim<R, F>> {
        let waiter = self.queue.waiter(ticket);
        let (fate, failure) = (waiter.fate, waiter.failure.take());
        if fate == Fate::Granted {
            let (grant, waker) = waiter.mailbox.claim_or_wait(ticket.serial, waker);
            orders.spend(waker);
            let Some(grant) = grant else {
                return Poll::Pending;
            };
            self.leave(ticket, self.latest_of(grant.slot, now), orders);
            self.slots[grant.slot].seat = None;
            return Poll::Ready(Ok(grant));
        }
        self.leave(ticket, now, orders);
        Poll::Ready(Err(match failure {
            Some(failure) => Refusal::Open(failure),
            None if fate == Fate::Closed => Refusal::Closed,
            None => self.unavailable(now),
        }))
    }

    /// Whoever read the clock first may get the lock last: it was granted by then.
    fn latest_of(&self, slot: SlotNo, now: Moment) -> Moment {
        now.max(self.slots[slot].since)
    }

    /// Ends a ticket.
    fn leave(&mut self, ticket: Ticket, now: Moment, orders: &mut Orders<R>) {
        let waiter = self.queue.waiter(ticket);
        orders.spend(waiter.waker.take());
        self.queue.leave(ticket, now);
        self.line_is_shorter(now, orders);
    }

    #[inline]
    pub(super) fn line_is_shorter(&mut self, now: Moment, orders: &mut Orders<R>) {
        if self.stepped_back && self.queue.is_empty() {
            self.due(now, orders);
        }
    }
}
