//! The way in: requests, the line, and who is served next.

use std::panic::Location;
use std::task::Waker;

use super::answers::{Answer, Grant, Refusal};
use super::orders::Letter;
use super::slot::{Asker, SlotNo, State};
use super::{Fate, HELD_UP_AFTER, Ledger, MailboxRef, Orders, Resource, Ticket, Work};
use crate::breaker::BreakerState;
use crate::config::{IdleOrder, Nested};
use crate::moment::Moment;
use crate::status::Reason;

/// What a try comes to: a grant, or nothing.
type Tried<R> = Result<Option<Grant<R>>, Refusal<<R as Resource>::Failure>>;

/// A place in line, where what is granted comes, and for when the alarm must be set.
pub(crate) struct Joined<R: Resource> {
    pub(crate) ticket: Ticket,
    pub(crate) mailbox: MailboxRef<R>,
    pub(crate) alarm: Option<Moment>,
}

impl<R: Resource> Ledger<R> {
    /// Would one who asks now be the first in line?
    pub(crate) fn begins_line(&self) -> bool {
        self.queue.is_empty() && self.shelf.is_empty()
    }

    /// Joins a line where there is nothing else to be decided. That is so in a pool that is busy, and nobody should wait for more.
    #[inline]
    pub(crate) fn join_line(
        &mut self,
        asker: Asker,
        waker: &mut Option<Waker>,
        until: Option<Moment>,
        now: Moment,
    ) -> Option<Joined<R>> {
        let plain = !self.queue.is_empty()
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
        let (ticket, mailbox) = self.queue.join(asker, waker.take(), until, now);
        let alarm = self.set_alarm(until, now);
        self.stay_sound(now);
        Some(Joined {
            ticket,
            mailbox,
            alarm,
        })
    }

    /// Asks for a resource: now, or by a place in line. One who waits leaves its waker, and is woken when its time is over, and before that
    /// from time to time, to look again.
    pub(crate) fn request(
        &mut self,
        asker: Asker,
        waker: &mut Option<Waker>,
        until: Option<Moment>,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Answer<R> {
        let answer = match self.grant_at_once(asker, now, orders) {
            Err(refusal) => Answer::Refused(refusal),
            Ok(Some(grant)) => Answer::Granted(grant),
            Ok(None) if self.is_line_full() => Answer::Refused(Refusal::Rejected {
                waiting: self.queue.len(),
            }),
            Ok(None) => {
                if self.queue.is_empty() {
                    self.line_begins();
                }
                let (ticket, mailbox) = self.queue.join(asker, waker.take(), until, now);
                orders.alarm = self.set_alarm(until, now);
                self.serve(now, orders);
                Answer::Wait { ticket, mailbox }
            }
        };
        self.end(orders, now);
        answer
    }

    /// Asks for a resource without waiting. Where an idle one must be checked first, that is begun, so that a later try can have
    /// it.
    pub(crate) fn try_request(&mut self, asker: Asker, now: Moment) -> (Tried<R>, Orders<R>) {
        let mut orders = Orders::default();
        let answer = self.grant_at_once(asker, now, &mut orders);
        if matches!(answer, Ok(None)) && self.queue.is_empty() && self.allowance() > 0 {
            if let Some(slot) = self.shelved(0) {
                self.vet(slot, now);
            }
        }
        (answer, self.finish(orders, now))
    }

    /// Serves those in line with what is idle, and sees to it that something is on its way for each who is left.
    #[inline]
    pub(super) fn serve(&mut self, now: Moment, orders: &mut Orders<R>) {
        if !self.queue.is_empty() && !self.has_nothing_to_give() {
            self.give_out(now, orders);
        }
    }

    /// Is nothing idle, and no room for more?
    fn has_nothing_to_give(&self) -> bool {
        self.shelf.is_empty() && self.occupied() >= self.max_size
    }

    fn give_out(&mut self, now: Moment, orders: &mut Orders<R>) {
        let mut allowance = self.allowance();
        while allowance > 0 && !self.queue.is_empty() {
            let Some(slot) = self.pick(now) else { break };
            self.grant(slot, now, orders);
            allowance -= 1;
        }
        let wanted = self.queue.len().min(allowance);
        if wanted == 0 {
            return;
        }
        for _ in self.coming(now)..wanted {
            // What `pick` left on the shelf must be vetted.
            match self.shelved(0) {
                Some(slot) => self.vet(slot, now),
                None if self.may_grow(now) => self.reserve(false, now),
                None => break,
            }
        }
        if let Some(at) = self.refused_until(now) {
            self.due(at, orders);
        }
    }

    /// The resource in `slot` is for the first in line.
    pub(super) fn grant(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        let (seat, waiter) = self
            .queue
            .settle_first(Fate::Granted)
            .expect("bug: granted to nobody");
        let asker = waiter.asker;
        let mailbox = MailboxRef::clone(&waiter.mailbox);
        let waker = waiter.waker.take();
        self.line_is_shorter(now, orders);
        self.lend(slot, asker, now);
        if let Some(circle) = self.circle_closed_by_grant(asker, now) {
            orders.circle = Some(circle);
        }
        self.slots[slot].seat = Some(seat);
        let grant = self.take(slot, now, orders);
        let letter = Letter { to: mailbox, grant };
        if orders.is_untouched() {
            orders.mail = Some(letter);
        } else {
            orders.deliver_too(letter);
        }
        orders.wake_soon(waker);
    }

    /// An idle resource that can be lent as it is: the hottest that needs no check, or exactly the oldest. What is worn out is closed on
    /// the way.
    fn pick(&mut self, now: Moment) -> Option<SlotNo> {
        let mut passed = 0;
        while let Some(slot) = self.shelved(passed) {
            if let Some(reason) = self.worn(slot, now) {
                self.unshelve(slot);
                self.retire(slot, reason, now);
            } else if !self.needs_vetting(slot, now) {
                self.unshelve(slot);
                return Some(slot);
            } else if self.limits.idle_order == IdleOrder::Oldest {
                return None;
            } else {
                passed += 1;
            }
        }
        None
    }

    pub(super) fn needs_vetting(&self, slot: SlotNo, now: Moment) -> bool {
        self.asks || self.slots[slot].is_unproven(self.limits.check_after_idle, now)
    }

    /// Owes a check of an idle resource, and the hook's consent.
    fn vet(&mut self, slot: SlotNo, now: Moment) {
        let check = self.slots[slot].is_unproven(self.limits.check_after_idle, now);
        self.examine(slot, check, self.asks, now);
    }

    pub(super) fn examine(&mut self, slot: SlotNo, check: bool, ask: bool, now: Moment) {
        self.unshelve(slot);
        self.become_state(slot, State::Checking, now);
        let Self { slots, owed, .. } = self;
        let resource = slots[slot]
            .resource
            .take()
            .expect("bug: what is idle is here");
        owed.push_back(Work::Vet {
            slot,
            id: slots[slot].id,
            resource,
            check,
            ask,
        });
    }

    /// Must the resource in this slot go, whoever wants it?
    pub(super) fn worn(&self, slot: SlotNo, now: Moment) -> Option<Reason> {
        let slot = &self.slots[slot];
        if slot.retire_at.is_some_and(|at| at <= now) {
            Some(Reason::Invalidated)
        } else if slot.expires_at.is_some_and(|at| at <= now) {
            Some(Reason::Lifetime)
        } else if self.limits.max_uses.is_some_and(|most| slot.uses >= most) {
            Some(Reason::Uses)
        } else if self.occupied() > self.max_size && self.total() > self.max_size {
            Some(Reason::Shrunk)
        } else {
            None
        }
    }

    /// Do as many wait as may? Those for whom there is room, or will be, do not count: they wait for that, and not for a return.
    fn is_line_full(&self) -> bool {
        let Some(most) = self.limits.max_waiters else {
            return false;
        };
        let vacant = self.max_size.saturating_sub(self.occupied());
        let prospects = vacant + self.occupied() - self.count(State::Leased);
        self.queue.len() >= most.saturating_add(prospects.min(self.allowance()))
    }

    /// How many resources are on their way to whoever waits. What is held up does not count, so that another is opened beside it.
    fn coming(&self, now: Moment) -> usize {
        let coming = self.slots.iter().filter(|slot| match slot.state {
            State::Opening | State::Checking | State::Cleaning => {
                now.saturating_duration_since(slot.since) < HELD_UP_AFTER
            }
            State::Vacant | State::Idle | State::Leased | State::Aside | State::Closing => false,
        });
        coming.count()
    }

    fn lend(&mut self, slot: SlotNo, asker: Asker, now: Moment) {
        self.become_state(slot, State::Leased, now);
        let slot = &mut self.slots[slot];
        slot.asker = Some(asker);
        slot.probe = self.breaker.state == BreakerState::Recovering;
    }

    /// Puts a lent resource into its holder's hands.
    #[inline(always)]
    fn take(&mut self, slot_no: SlotNo, now: Moment, orders: &mut Orders<R>) -> Grant<R> {
        if let Some(after) = self.limits.leak_after {
            self.due(now + after, orders);
        }
        if self.limits.min_idle > self.shelf.len() && self.shortage() > 0 {
            self.due(now, orders);
        }
        let slot = &mut self.slots[slot_no];
        slot.uses += 1;
        slot.overdue = false;
        Grant {
            slot: slot_no,
            resource: slot.resource.take().expect("bug: what is granted is here"),
            uses: slot.uses,
        }
    }

    pub(super) fn unavailable(&self, now: Moment) -> Refusal<R::Failure> {
        let breaker = &self.breaker;
        Refusal::Unavailable {
            since: now.saturating_duration_since(breaker.since),
            // Before the strategy was asked, nobody can say when.
            retry_after: breaker
                .ask_at
                .filter(|at| *at > breaker.since)
                .map(|at| at.saturating_duration_since(now)),
            cause: breaker.cause.clone(),
        }
    }

    fn denied(&self, asker: Asker) -> Option<&'static Location<'static>> {
        if self.limits.nested != Nested::Deny {
            return None;
        }
        self.held_by(asker.owner?).next().map(|held| held.site)
    }

    fn grant_at_once(&mut self, asker: Asker, now: Moment, orders: &mut Orders<R>) -> Tried<R> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        if self.breaker.state == BreakerState::Inactive {
            return Err(self.unavailable(now));
        }
        if let Some(held) = self.denied(asker) {
            return Err(Refusal::Nested { held });
        }
        if !self.queue.is_empty() || self.allowance() == 0 {
            return Ok(None);
        }
        let Some(slot) = self.pick(now) else {
            return Ok(None);
        };
        self.lend(slot, asker, now);
        let grant = self.take(slot, now, orders);
        self.set_aside(slot, now, orders);
        Ok(Some(grant))
    }
}
