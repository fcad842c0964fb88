//! The end of a wait: a claim, a timeout, a withdrawal, and what was granted to one who is gone.

use std::sync::Arc;
use std::task::{Poll, Waker};

use super::answers::{Claim, Grant, Refusal, TimeIsUp};
use super::mailbox::Mail;
use super::slot::SlotNo;
use super::{Fate, Ledger, Orders, Resource, Ticket};
use crate::moment::Moment;

impl<R: Resource> Ledger<R> {
    /// Has the waiter's fate been decided? If not, `waker` is woken when it is, or when the time is over. The ticket ends with an answer.
    pub(crate) fn claim(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        until: Option<Moment>,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Poll<Claim<R>> {
        if self.queue.waiter(ticket).is_in_line() {
            // What was on its way may be held up by now.
            self.serve(now, orders);
            self.wait_on(ticket, waker, until, now, orders);
        }
        self.wake_others(None, now, orders);
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
        until: Option<Moment>,
        now: Moment,
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
        waiter.look_again(until, now);
        orders.alarm = self.set_alarm(until, now);
    }

    /// The waiter's time is over. What was granted at the last moment is still theirs, and may be on its way. Otherwise the ticket ends, and
    /// so it does for all others whose time is over, if it falls to this one to tell them.
    pub(crate) fn time_out(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        pool: &Arc<str>,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Poll<Claim<R>> {
        let claim = match self.queue.waiter(ticket).is_in_line() {
            true => Poll::Ready(Err(self.give_up(ticket, pool, now, orders))),
            false => self.hear(ticket, waker, now, orders),
        };
        self.end(orders, now);
        claim
    }

    fn give_up(
        &mut self,
        ticket: Ticket,
        pool: &Arc<str>,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Refusal<R::Failure> {
        let waiter = self.queue.waiter(ticket);
        waiter.look_again(None, now);
        let since = waiter.since;
        self.counts.timed_out += 1;
        let seen = self.report(ticket, pool, now);
        self.wake_others(Some(Arc::clone(&seen)), now, orders);
        self.leave(ticket, now, orders);
        Refusal::TimedOut(TimeIsUp { since, seen })
    }

    /// The waiter is gone. What it was about to get goes to the next.
    pub(crate) fn withdraw(&mut self, ticket: Ticket, now: Moment) -> Orders<R> {
        let mut orders = Orders::default();
        let waiter = self.queue.waiter(ticket);
        if waiter.fate == Fate::TimedOut {
            orders.forget(waiter.mailbox.claim(ticket.serial));
            return self.finish(orders, now);
        }
        self.counts.cancelled += 1;
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
    ) -> Poll<Claim<R>> {
        let waiter = self.queue.waiter(ticket);
        let (fate, failure) = (waiter.fate, waiter.failure.take());
        if matches!(fate, Fate::Granted | Fate::TimedOut) {
            let (mail, waker) = waiter.mailbox.claim_or_wait(ticket.serial, waker);
            orders.spend(waker);
            return match mail {
                None => Poll::Pending,
                Some(Mail::TimeIsUp(over)) => Poll::Ready(Err(Refusal::TimedOut(over))),
                Some(Mail::Grant(grant)) => {
                    self.leave(ticket, self.latest_of(grant.slot, now), orders);
                    self.slots[grant.slot].seat = None;
                    Poll::Ready(Ok(grant))
                }
            };
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
