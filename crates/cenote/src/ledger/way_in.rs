//! The way in: requests, the line, and who is served next.

use std::panic::Location;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::answers::{Answer, Claim, Grant, LastWord, Refusal};
use super::slot::{Asker, SlotNo, State};
use super::{Fate, HELD_UP_AFTER, Ledger, Orders, Ticket, Work};
use crate::breaker::BreakerState;
use crate::config::{IdleOrder, Nested};
use crate::moment::Moment;
use crate::status::Reason;

impl<R, F: Clone> Ledger<R, F> {
    /// Would one who asks now be the first in line?
    pub(crate) fn begins_line(&self) -> bool {
        self.queue.is_empty() && self.shelf.is_empty()
    }

    /// Asks for a resource: now, or by a place in line. One who waits is woken at `look_at`, to look again.
    pub(crate) fn request(
        &mut self,
        asker: Asker,
        waker: &Waker,
        look_at: Option<Moment>,
        now: Moment,
        orders: &mut Orders,
    ) -> Answer<R, F> {
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
                let ticket = self.queue.join(asker, waker.clone(), look_at, now);
                self.set_alarm(look_at, orders);
                self.counts.waited += 1;
                self.serve(now, orders);
                Answer::Wait {
                    ticket,
                    nested: self.closes_circle(asker, now),
                }
            }
        };
        self.end(orders, now);
        answer
    }

    /// Asks for a resource without waiting. Where an idle one must be checked first, that is begun, so that a later try can have
    /// it.
    pub(crate) fn try_request(
        &mut self,
        asker: Asker,
        now: Moment,
    ) -> (Result<Option<Grant<R>>, Refusal<F>>, Orders) {
        let mut orders = Orders::default();
        let answer = self.grant_at_once(asker, now, &mut orders);
        if matches!(answer, Ok(None)) && self.queue.is_empty() && self.allowance() > 0 {
            if let Some(slot) = self.shelved(0) {
                self.vet(slot, now);
            }
        }
        (answer, self.finish(orders, now))
    }

    /// Has the waiter's fate been decided? If not, `waker` is woken when it is, or at `look_at`. The ticket ends with an answer.
    pub(crate) fn claim(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        look_at: Option<Moment>,
        now: Moment,
        orders: &mut Orders,
    ) -> Poll<Claim<R, F>> {
        if self.queue.waiter(ticket).is_in_line() {
            // What was on its way may be held up by now.
            self.serve(now, orders);
            self.wait_on(ticket, waker, look_at, orders);
        }
        let claim = match self.queue.waiter(ticket).is_in_line() {
            true => Poll::Pending,
            false => Poll::Ready(self.hear(ticket, now, orders)),
        };
        self.end(orders, now);
        claim
    }

    fn wait_on(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        look_at: Option<Moment>,
        orders: &mut Orders,
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

    /// The waiter's time is over. What was granted at the last moment is still theirs; otherwise the ticket ends with a report.
    pub(crate) fn time_out(&mut self, ticket: Ticket, now: Moment) -> (LastWord<R, F>, Orders) {
        let mut orders = Orders::default();
        let claim = match self.queue.waiter(ticket).fate {
            Fate::Waiting => {
                self.counts.timed_out += 1;
                let report = Box::new(self.report(ticket, now));
                self.leave(ticket, now, &mut orders);
                Err(report)
            }
            _ => Ok(self.hear(ticket, now, &mut orders)),
        };
        (claim, self.finish(orders, now))
    }

    /// The waiter is gone. What it was about to get goes to the next.
    pub(crate) fn withdraw(&mut self, ticket: Ticket, now: Moment) -> Orders {
        let mut orders = Orders::default();
        self.counts.cancelled += 1;
        let (fate, _) = self.leave(ticket, now, &mut orders);
        match fate {
            Fate::Granted(slot) => self.place(slot, now, &mut orders),
            Fate::Failed(failure) => self.waste.push(failure),
            Fate::Waiting | Fate::Unavailable | Fate::Closed | Fate::Gone => {}
        }
        self.finish(orders, now)
    }

    /// Serves those in line with what is idle, and sees to it that something is on its way for each who is left.
    pub(super) fn serve(&mut self, now: Moment, orders: &mut Orders) {
        let nothing_to_give = self.shelf.is_empty() && self.occupied() >= self.max_size;
        if self.queue.is_empty() || nothing_to_give {
            return;
        }
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
    pub(super) fn grant(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders) {
        let waiter = self
            .queue
            .settle_first(Fate::Granted(slot))
            .expect("bug: granted to nobody");
        let asker = waiter.asker;
        orders.wake_soon(waiter.waker.take());
        self.lend(slot, asker, now);
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
        slot.not_in_line.set(0);
        slot.probe = self.breaker.state == BreakerState::Recovering;
    }

    /// Puts a lent resource into its holder's hands.
    fn take(
        &mut self,
        slot_no: SlotNo,
        waited: Duration,
        now: Moment,
        orders: &mut Orders,
    ) -> Grant<R> {
        self.counts.acquired += 1;
        if let Some(after) = self.limits.leak_after {
            self.due(now + after, orders);
        }
        if self.limits.min_idle > self.shelf.len() && self.shortage() > 0 {
            self.due(now, orders);
        }
        let slot = &mut self.slots[slot_no];
        slot.since = now;
        slot.uses += 1;
        slot.overdue = false;
        Grant {
            slot: slot_no,
            resource: slot
                .resource
                .take()
                .expect("bug: what is granted is here until it is claimed"),
            id: slot.id,
            opened_at: slot.opened_at,
            uses: slot.uses,
            waited,
            is_aside: false,
            nested: None,
        }
    }

    /// Ends a ticket whose fate is decided.
    fn hear(&mut self, ticket: Ticket, now: Moment, orders: &mut Orders) -> Claim<R, F> {
        let (fate, waited) = self.leave(ticket, now, orders);
        match fate {
            Fate::Waiting | Fate::Gone => unreachable!("bug: the fate is decided"),
            Fate::Granted(slot) => {
                let mut claim = Ok(self.take(slot, waited, now, orders));
                if let Ok(grant) = &mut claim {
                    grant.nested = self.circle_closed_by_grant(slot, now);
                }
                claim
            }
            Fate::Failed(failure) => Err(Refusal::Open(failure)),
            Fate::Unavailable => Err(self.unavailable(now)),
            Fate::Closed => Err(Refusal::Closed),
        }
    }

    /// Ends a ticket: what became of it, and how long it took.
    fn leave(&mut self, ticket: Ticket, now: Moment, orders: &mut Orders) -> (Fate<F>, Duration) {
        let (fate, since, waker) = self.queue.leave(ticket);
        orders.spend(waker);
        if self.stepped_back && self.queue.is_empty() {
            self.due(now, orders);
        }
        let waited = now.saturating_duration_since(since);
        self.counts.wait_time += waited;
        (fate, waited)
    }

    fn unavailable(&self, now: Moment) -> Refusal<F> {
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

    fn grant_at_once(
        &mut self,
        asker: Asker,
        now: Moment,
        orders: &mut Orders,
    ) -> Result<Option<Grant<R>>, Refusal<F>> {
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
        let mut grant = self.take(slot, Duration::ZERO, now, orders);
        grant.is_aside = self.set_aside(slot, now, orders);
        Ok(Some(grant))
    }
}
