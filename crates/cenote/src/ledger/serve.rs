//! Serving: a waiter gets a resource, or one is on its way for it.
//!
//! Every entry that frees a resource or a place ends here. [`Ledger::serve`] gives what is idle to
//! the waiters and orders work for the rest; [`Ledger::place`] finds the place of one resource.

use std::mem;

use super::slot::{Asker, SlotNo, State};
use super::{Ledger, Mail, Orders, Resource};
use crate::breaker::BreakerState;
use crate::status::CloseReason;
use crate::time::Moment;

impl<R: Resource> Ledger<R> {
    /// Gives idle resources to the waiters, and orders work for the waiters that are left.
    #[inline]
    pub(super) fn serve(&mut self, now: Moment, orders: &mut Orders<R>) {
        if self.breaker.proving {
            self.prove(now, orders);
        }
        if !self.waiters.is_empty() && !self.is_exhausted() {
            self.give_out(now, orders);
        }
    }

    /// Returns whether no resource is idle and no slot is free.
    pub(super) fn is_exhausted(&self) -> bool {
        self.shelf.is_empty() && self.occupied() >= self.max_size
    }

    #[inline(never)]
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
            // `pick` saw only a part of the shelf. When its first resource leaves for a check, a
            // fit one may come into view.
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

    /// Returns whether a waiter may be granted a resource. Waiters whose deadline has passed time
    /// out first.
    #[inline(always)]
    pub(super) fn may_grant(&mut self, now: Moment, orders: &mut Orders<R>) -> bool {
        self.grant_places(now, orders);
        self.time_out_first(now, orders);
        !self.waiters.is_empty() && self.allowance() > 0 && !self.waiters.wants_place()
    }

    /// Grants the resource in `slot` to the first waiter, and delivers it. At any time a resource
    /// is in its slot, in a mailbox, or with its holder.
    #[inline(always)]
    pub(super) fn grant(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        let Some(first) = self.waiters.first() else {
            return;
        };
        let (asker, since, deadline) = (first.asker, first.since, first.deadline);
        let resource = self.lend(slot, &asker, now, orders);
        let entry = &mut self.slots[slot];
        entry.deadline = deadline;
        self.wait_time += now.nanoseconds_since(since);
        self.unclaimed_until = self.unclaimed_until.min(deadline);
        // A waiter leaves the queue and gets its mail with nothing in between.
        if let Some(waiter) = self.waiters.take_first() {
            waiter.mailbox.deliver(Mail::Grant(resource));
            entry.mailbox = Some(waiter.mailbox);
            orders.wake_waiter(waiter.waker);
        }
        self.queue_is_shorter(now, orders);
        if self.waiters.is_empty() {
            self.unserved_since = None;
        }
    }

    /// A waiter has left the queue. The next one may want no more than a place, which may be there
    /// already. Upkeep that stepped back for the waiters can go on after the last of them.
    #[inline]
    pub(super) fn queue_is_shorter(&mut self, now: Moment, orders: &mut Orders<R>) {
        self.grant_places(now, orders);
        if self.waiters.is_empty() && self.stepped_back {
            self.due(now, orders);
        }
    }

    /// Lends the resource in `slot`.
    #[inline(always)]
    pub(super) fn lend(
        &mut self,
        slot: SlotNo,
        asker: &Asker,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> R {
        let fresh = self.slots[slot].state == State::Opening;
        self.become_state(slot, State::Leased, now);
        if let Some(after) = self.limits.leak_after {
            self.due(now + after, orders);
        }
        if self.limits.min_idle > self.shelf.len() && self.shortage() > 0 {
            self.due(now, orders);
        }
        self.lent += 1;
        let probe = self.breaker.state == BreakerState::Recovering;
        let entry = &mut self.slots[slot];
        entry.asker = Some(*asker);
        entry.probe = probe;
        entry.uses += 1;
        entry.overdue = false;
        entry.kept = false;
        let resource = entry.resource.take();
        let mut resource = resource.expect("bug: a resource that is granted is in its slot");
        resource.lent(entry.uses, fresh);
        resource
    }

    /// Takes an unclaimed grant back: its resource is in its slot again. Its waiter has waited
    /// until now.
    pub(super) fn take_back(&mut self, resource: R, now: Moment) -> SlotNo {
        let slot = resource.slot();
        let entry = &mut self.slots[slot];
        self.wait_time += now.nanoseconds_since(entry.since);
        entry.resource = Some(resource);
        entry.uses -= 1;
        entry.asker = None;
        entry.mailbox = None;
        self.lent -= 1;
        slot
    }

    /// How many resources may be lent beyond those that are lent already.
    pub(super) fn allowance(&self) -> usize {
        if self.closed || self.suspended {
            return 0;
        }
        let places = self.places();
        match self.breaker.state {
            BreakerState::Active => places,
            BreakerState::Inactive => 0,
            BreakerState::Recovering if self.breaker.proving => 0,
            BreakerState::Recovering => {
                let leased = self.slots.iter().filter(|slot| slot.state == State::Leased);
                let probes = leased.filter(|slot| slot.probe).count();
                self.limits.probes.saturating_sub(probes).min(places)
            }
        }
    }

    /// Finds the place of a resource: with the first waiter, on the shelf, or out of service.
    pub(super) fn place(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        match self.unfit(slot, now) {
            Some(reason) => {
                self.retire(slot, reason, now);
                self.serve(now, orders);
            }
            None => self.pass_on(slot, now, orders),
        }
    }

    /// The same for a resource that is known to be fit.
    #[inline(always)]
    pub(super) fn pass_on(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        if self.may_grant(now, orders) {
            self.grant(slot, now, orders);
        } else {
            self.shelve(slot, now, orders);
        }
        // The slot has changed its state, so another may be opened, or lent as a probe.
        self.serve(now, orders);
    }

    /// Puts a resource back on the shelf, from where it is vetted before it is lent.
    pub(super) fn restore(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        match self.unfit(slot, now) {
            Some(reason) => self.retire(slot, reason, now),
            None => self.shelve(slot, now, orders),
        }
        self.serve(now, orders);
    }

    fn unfit(&self, slot: SlotNo, now: Moment) -> Option<CloseReason> {
        match self.closed {
            true => Some(CloseReason::PoolClosed),
            false => self.worn(slot, now),
        }
    }

    /// Frees a slot: a waiter may have it, or the upkeep task refills.
    pub(super) fn vacate(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        self.become_state(slot, State::Vacant, now);
        self.vacant.push(slot);
        self.tell_watchers(orders);
        self.serve(now, orders);
        if self.shortage() > 0 {
            self.due(now, orders);
        }
    }

    /// A resource was found dead. Idle resources that have not been proven alive since are checked
    /// now, in the background, so that the next callers do not each meet a dead one.
    pub(super) fn found_dead(&mut self, now: Moment) {
        self.dead_at = self.dead_at.max(now);
        let limits = &self.limits;
        let checks = limits.check_after_idle.is_some() || limits.heartbeat_interval.is_some();
        if self.closed || !checks {
            return;
        }
        for slot in mem::take(&mut self.shelf) {
            self.examine(slot, true, false, now);
        }
    }
}
