//! When upkeep has something to do, and how its task learns of it.
//!
//! The upkeep task sleeps until `wakes_at`. An entry that makes something due before that rings it.

use super::slot::{SlotNo, State};
use super::{HELD_UP_AFTER, Ledger, Orders, Resource};
use crate::breaker::BreakerState;
use crate::time::Moment;
use std::time::Duration;

/// A replacement is opened this long before a resource expires, at most. An open seldom takes
/// longer.
pub(super) const REPLACE_AHEAD: Duration = Duration::from_secs(5);

/// How many idle resources the heartbeat checks at once. Few, because a resource that is being
/// checked cannot be lent.
pub(super) const HEARTBEATS_AT_ONCE: usize = 2;

impl<R: Resource> Ledger<R> {
    /// Rings the upkeep task unless it wakes before `at`.
    pub(super) fn due(&mut self, at: Moment, orders: &mut Orders<R>) {
        if self.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
            self.wakes_at = Some(at);
            orders.rest().ring = true;
        }
    }

    /// Rings the upkeep task if its next job comes before it wakes.
    pub(super) fn due_next(&mut self, now: Moment, orders: &mut Orders<R>) {
        if let Some(at) = self.next_due(now) {
            self.due(at, orders);
        }
    }

    /// Rings the upkeep task if it has a job for this slot before it wakes.
    pub(super) fn due_of(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        if let Some(at) = self.replace_at(slot) {
            self.due(at, orders);
        }
        let beats = self.limits.heartbeat_interval.is_some();
        if beats || self.shortage() > 0 {
            self.due_next(now, orders);
        }
    }

    /// How many resources `min_size` and `min_idle` ask for beyond those that are open or on their
    /// way. While opening fails or hangs and no resource is left, one: the pool finds out by itself
    /// when the backend is back.
    pub(super) fn shortage(&self) -> usize {
        if self.closed || self.paused || !self.lends_freely() {
            return 0;
        }
        let total = self.total();
        let least = self.limits.min_size.max(usize::from(self.is_down()));
        let spare = self.shelf.len() + self.count(State::Opening) + self.count(State::Checking);
        let wanted = least
            .saturating_sub(total)
            .max(self.limits.min_idle.saturating_sub(spare));
        wanted.min(self.max_size.saturating_sub(self.occupied()))
    }

    pub(super) fn lends_freely(&self) -> bool {
        !self.suspended && self.breaker.state == BreakerState::Active
    }

    /// Returns whether a resource may be opened that no caller waits for.
    pub(super) fn may_refill(&self, now: Moment) -> bool {
        let backed_off = self
            .failing
            .as_ref()
            .is_some_and(|failing| now < failing.refill_at);
        self.lends_freely() && !backed_off && self.has_room(now)
    }

    /// Returns whether the pool has more than `min_size` and `min_idle` ask for.
    pub(super) fn is_evictable(&self) -> bool {
        self.shelf.len() > self.limits.min_idle && self.total() > self.limits.min_size
    }

    /// When the successor of this resource is due, unless that was decided already.
    pub(super) fn replace_at(&self, slot: SlotNo) -> Option<Moment> {
        let entry = &self.slots[slot];
        let lives =
            matches!(entry.state, State::Idle | State::Leased | State::OnTray) && !entry.replaced;
        let expires_at = entry.expires_at.filter(|_| lives)?;
        let lifetime = expires_at.saturating_duration_since(entry.opened_at);
        Some(expires_at - REPLACE_AHEAD.min(lifetime / 10))
    }

    /// When upkeep has something to do next, `upkeep_interval` from now at the latest.
    pub(super) fn next_due(&self, now: Moment) -> Option<Moment> {
        if self.closed {
            return None;
        }
        let mut next = now + self.limits.upkeep_interval;
        let mut sooner = |at: Option<Moment>| next = next.min(at.unwrap_or(next));
        sooner(self.stand_in_at());
        sooner(self.breaker.ask_at);
        sooner(self.proof_at(now).filter(|_| self.breaker.proving));
        sooner(self.refused_until(now).filter(|_| !self.waiters.is_empty()));
        if self.paused {
            return Some(next);
        }
        // While a waiter is queued, upkeep puts off the jobs that are due. The last waiter that
        // leaves the queue rings it.
        let calm = self.waiters.is_empty();
        let counts = |at: &Moment| calm || *at > now;
        let may_open = self.has_room(now) && self.lends_freely();
        let failing = self.failing.as_ref();
        let open_at = failing.map_or(now, |failing| failing.refill_at);
        if self.shortage() > 0 {
            sooner(Some(open_at).filter(|at| may_open && counts(at)));
            let working = self.working(now).next();
            sooner(working.map(|slot| self.slots[slot].since + HELD_UP_AFTER));
        }
        let evicts = self.limits.idle_timeout.filter(|_| self.is_evictable());
        let beats = self.count(State::Checking) < HEARTBEATS_AT_ONCE;
        let beat = self.limits.heartbeat_interval.filter(|_| beats);
        for (number, slot) in self.slots.iter().enumerate() {
            if slot.state == State::Idle {
                sooner(slot.retire_at);
                sooner(slot.expires_at);
                sooner(evicts.map(|timeout| slot.used_at + timeout));
                let beat = beat.map(|interval| slot.proven_at() + interval);
                sooner(beat.filter(counts));
            }
            if slot.state == State::Leased && !slot.overdue && !slot.kept {
                sooner(self.limits.leak_after.map(|after| slot.since + after));
            }
            if may_open {
                let at = self.replace_at(number).map(|at| at.max(open_at));
                sooner(at.filter(counts));
            }
        }
        Some(next)
    }
}
