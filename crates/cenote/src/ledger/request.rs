//! Requests: a caller asks, and is granted a resource, queued or refused; and the next waiter is served.

use std::panic::Location;
use std::task::Waker;
use std::time::Duration;

use super::answers::{Answer, Grant, Refusal, Unavailable};
use super::slot::{Asker, SlotNo, State};
use super::{Ledger, MailboxRef, Orders, Resource, Ticket};
use crate::breaker::BreakerState;
use crate::config::Nested;
use crate::moment::Moment;

/// What a try comes to: a grant, or nothing.
type Tried<R> = Result<Option<Grant<R>>, Refusal<<R as Resource>::Failure>>;

/// The caller was granted a dead resource, and asks again from its old place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Again {
    pub(crate) since: Moment,
    /// It was in the queue before.
    pub(crate) waited: bool,
}

impl<R: Resource> Ledger<R> {
    /// Returns whether a caller that asks now would be the first waiter.
    pub(crate) fn begins_line(&self) -> bool {
        self.waiters.is_empty() && self.shelf.is_empty()
    }

    /// Queues a caller where nothing else is to be decided, as in a busy pool.
    #[inline]
    pub(crate) fn join_line(
        &mut self,
        asker: Asker,
        waker: &mut Option<Waker>,
        deadline: Moment,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Option<(Ticket, MailboxRef<R>)> {
        let plain = !self.waiters.is_empty()
            && !self.closed
            && self.breaker.state == BreakerState::Active
            && self.limits.max_waiters.is_none()
            && self.limits.nested != Nested::Deny
            && self.has_nothing_to_give()
            && self.owed.is_empty()
            && self.waste.is_empty();
        if !plain {
            return None;
        }
        let place = self.waiters.join(asker, waker.take(), deadline, now);
        self.set_alarm(deadline, now, orders);
        self.stay_sound(now);
        Some(place)
    }

    /// Asks for a resource: now, or by a place in the queue. A waiter leaves its waker.
    pub(crate) fn request(
        &mut self,
        asker: Asker,
        waker: &mut Option<Waker>,
        deadline: Moment,
        again: Option<Again>,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Answer<R> {
        let answer = match self.grant_at_once(asker, again, now, orders) {
            Err(refusal) => Answer::Refused(refusal),
            Ok(Some(grant)) => Answer::Granted(grant),
            Ok(None) if again.is_none() && self.is_line_full() => {
                Answer::Refused(Refusal::Rejected {
                    waiting: self.waiters.len(),
                })
            }
            Ok(None) => {
                if self.waiters.is_empty() {
                    self.line_begins(now);
                }
                let waker = waker.take();
                let (ticket, mailbox) = match again {
                    None => self.waiters.join(asker, waker, deadline, now),
                    Some(again) => self.waiters.rejoin(asker, waker, deadline, again),
                };
                self.set_alarm(deadline, now, orders);
                self.serve(now, orders);
                Answer::Wait { ticket, mailbox }
            }
        };
        self.end(orders, now);
        answer
    }

    /// The waiter is polled: it leaves the waker of this poll, and what may be held up is looked at. Returns whether it still waits; if not,
    /// the outcome is in its mailbox.
    pub(crate) fn look(
        &mut self,
        ticket: Ticket,
        waker: Waker,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> bool {
        let Some(waiter) = self.waiters.waiter(ticket) else {
            orders.spend(Some(waker));
            return false;
        };
        let deadline = waiter.deadline;
        let before = waiter.waker.replace(waker);
        orders.spend(before);
        if deadline <= now {
            self.time_out(ticket, now, orders);
        } else {
            // What was on its way may be held up by now.
            self.serve(now, orders);
            self.look_for_circle(ticket, now, orders);
            self.set_alarm(deadline, now, orders);
        }
        self.end(orders, now);
        self.waiters.waiter(ticket).is_some()
    }

    /// The waiter is gone. What was granted to it goes to the next.
    pub(crate) fn withdraw(
        &mut self,
        ticket: Ticket,
        mailbox: &MailboxRef<R>,
        now: Moment,
    ) -> Orders<R> {
        let mut orders = Orders::default();
        if let Some(waiter) = self.waiters.take(ticket) {
            self.counts.cancelled += 1;
            self.wait_time += now.nanoseconds_since(waiter.since);
            orders.spend(waiter.waker);
            self.gave_up_at = now;
            self.line_is_shorter(now, &mut orders);
            return self.finish(orders, now);
        }
        // First of all, because the report of a timeout counts every resource, and one that is taken
        // back is between two states.
        self.time_out_first(now, &mut orders);
        match mailbox.take() {
            Some(Ok(grant)) => {
                self.counts.cancelled += 1;
                let slot = self.take_back(grant, now);
                self.place(slot, now, &mut orders);
            }
            Some(Err(refusal)) => {
                if !matches!(refusal, Refusal::TimedOut(_)) {
                    self.counts.cancelled += 1;
                }
                orders.discard(Err(refusal));
            }
            None => {}
        }
        self.finish(orders, now)
    }

    /// An unclaimed grant was taken back: its resource is in its slot again. Its waiter has waited
    /// until now.
    pub(super) fn take_back(&mut self, grant: Grant<R>, now: Moment) -> SlotNo {
        let slot = &mut self.slots[grant.slot];
        self.wait_time += now.nanoseconds_since(slot.since);
        slot.resource = Some(grant.resource);
        slot.uses -= 1;
        slot.asker = None;
        slot.mailbox = None;
        self.lent -= 1;
        grant.slot
    }

    /// Asks for a resource without waiting. Where an idle one must be checked first, that is begun, so that a later try can have
    /// it.
    pub(crate) fn try_request(
        &mut self,
        asker: Asker,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Tried<R> {
        let answer = self.grant_at_once(asker, None, now, orders);
        if matches!(answer, Ok(None)) && self.waiters.is_empty() && self.allowance() > 0 {
            if let Some(slot) = self.shelved(0) {
                self.vet(slot, now);
            }
        }
        self.end(orders, now);
        answer
    }

    /// Serves the waiters with what is idle, and sees to it that a resource is on its way for each that is left.
    #[inline]
    pub(super) fn serve(&mut self, now: Moment, orders: &mut Orders<R>) {
        if !self.waiters.is_empty() && !self.has_nothing_to_give() {
            self.give_out(now, orders);
        }
    }

    /// Returns whether nothing is idle, and there is no room for more.
    fn has_nothing_to_give(&self) -> bool {
        self.shelf.is_empty() && self.occupied() >= self.max_size
    }

    fn give_out(&mut self, now: Moment, orders: &mut Orders<R>) {
        let mut coming = None;
        loop {
            while self.may_grant(now, orders) {
                let Some(slot) = self.pick(now) else { break };
                self.grant(slot, now, orders);
            }
            let wanted = self.waiters.len().min(self.allowance());
            let coming = coming.get_or_insert_with(|| self.working(now).take(wanted).count());
            if *coming >= wanted {
                break;
            }
            *coming += 1;
            // `pick` passed over the first one on the shelf, and saw only a part of it: a fit one may come into view.
            match self.shelved(0) {
                Some(slot) => self.vet(slot, now),
                None if self.may_grow(now) => self.reserve(false, now),
                None => break,
            }
        }
        if !self.waiters.is_empty() {
            if let Some(at) = self.refused_until(now) {
                self.due(at, orders);
            }
        }
    }

    /// Returns whether a waiter is there that may be granted a resource: the first one has time left.
    #[inline]
    pub(super) fn may_grant(&mut self, now: Moment, orders: &mut Orders<R>) -> bool {
        self.time_out_first(now, orders);
        !self.waiters.is_empty() && self.allowance() > 0
    }

    /// Times out the first waiters as long as they are overdue.
    #[inline]
    fn time_out_first(&mut self, now: Moment, orders: &mut Orders<R>) {
        while self
            .waiters
            .first()
            .is_some_and(|first| first.deadline <= now)
        {
            self.time_out_all(now, orders);
        }
    }

    /// Grants the resource in `slot` to the first waiter. The grant is delivered here, under the lock: it is never anywhere but in its
    /// slot, in a mailbox, or with its holder.
    #[inline]
    pub(super) fn grant(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        let Some(waiter) = self.waiters.take_first() else {
            return;
        };
        self.line_is_shorter(now, orders);
        if self.waiters.is_empty() {
            self.unserved_since = None;
        }
        self.wait_time += now.nanoseconds_since(waiter.since);
        let fresh = self.slots[slot].state == State::Opening;
        self.lend(slot, waiter.asker, now);
        let grant = self.take(slot, fresh, now, orders);
        let entry = &mut self.slots[slot];
        entry.deadline = waiter.deadline;
        entry.waiting_since = waiter.since;
        self.unclaimed_until = self.unclaimed_until.min(waiter.deadline);
        waiter.mailbox.deliver(Ok(grant));
        entry.mailbox = Some(waiter.mailbox);
        orders.wake_waiter(waiter.waker);
    }

    #[inline]
    pub(super) fn line_is_shorter(&mut self, now: Moment, orders: &mut Orders<R>) {
        if self.waiters.is_empty() && self.stepped_back {
            self.due(now, orders);
        }
    }

    /// Returns whether as many wait as may. Those for whom there is room, or will be, do not count: they wait for that, and not for a
    /// return.
    fn is_line_full(&self) -> bool {
        let Some(most) = self.limits.max_waiters else {
            return false;
        };
        let vacant = self.max_size.saturating_sub(self.occupied());
        let prospects = vacant + self.occupied() - self.count(State::Leased);
        self.waiters.len() >= most.saturating_add(prospects.min(self.allowance()))
    }

    fn lend(&mut self, slot: SlotNo, asker: Asker, now: Moment) {
        self.become_state(slot, State::Leased, now);
        let slot = &mut self.slots[slot];
        slot.asker = Some(asker);
        slot.probe = self.breaker.state == BreakerState::Recovering;
    }

    /// Takes a lent resource out of its slot.
    #[inline(always)]
    fn take(
        &mut self,
        slot_no: SlotNo,
        fresh: bool,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Grant<R> {
        if let Some(after) = self.limits.leak_after {
            self.due(now + after, orders);
        }
        if self.limits.min_idle > self.shelf.len() && self.shortage() > 0 {
            self.due(now, orders);
        }
        self.lent += 1;
        let slot = &mut self.slots[slot_no];
        slot.uses += 1;
        slot.overdue = false;
        Grant {
            slot: slot_no,
            resource: slot
                .resource
                .take()
                .expect("bug: a resource that is granted is in its slot"),
            uses: slot.uses,
            fresh,
        }
    }

    /// Why a caller is refused while the breaker is inactive.
    fn unavailable(&self, now: Moment) -> Refusal<R::Failure> {
        let breaker = &self.breaker;
        Refusal::Unavailable(Box::new(Unavailable {
            since: now.saturating_duration_since(breaker.since),
            // Before the strategy was asked, the time is not known.
            retry_after: breaker
                .ask_at
                .filter(|at| *at > breaker.since)
                .map(|at| at.saturating_duration_since(now)),
            cause: breaker.cause.clone(),
        }))
    }

    /// Why a waiter is refused when the breaker becomes inactive.
    pub(super) fn tripped(&self) -> Refusal<R::Failure> {
        Refusal::Unavailable(Box::new(Unavailable {
            since: Duration::ZERO,
            retry_after: None,
            cause: self.breaker.cause.clone(),
        }))
    }

    fn denied(&self, asker: Asker) -> Option<&'static Location<'static>> {
        if self.limits.nested != Nested::Deny {
            return None;
        }
        self.held_by(asker.owner?).next().map(|held| held.site)
    }

    fn grant_at_once(
        &mut self,
        asker: Asker,
        again: Option<Again>,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Tried<R> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        if self.breaker.state == BreakerState::Inactive {
            return Err(self.unavailable(now));
        }
        if let Some(held) = self.denied(asker) {
            return Err(Refusal::Nested { held });
        }
        let must_queue = !self.waiters.is_empty() && again.is_none();
        if must_queue || self.allowance() == 0 {
            return Ok(None);
        }
        let Some(slot) = self.pick(now) else {
            return Ok(None);
        };
        self.unserved_since = None;
        self.lend(slot, asker, now);
        Ok(Some(self.take(slot, false, now, orders)))
    }
}
