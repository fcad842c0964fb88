//! The shelf: the idle slots, ordered by their last use.

use super::slot::{SlotNo, State};
use super::{Ledger, Orders, Resource};
use crate::config::IdleOrder;
use crate::status::CloseReason;
use crate::time::Moment;

/// How many idle resources are passed over because they must be checked first, before the first of
/// them is checked.
const PASSED: usize = 8;

/// Whether the pool wants a lease back that is kept for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recall {
    Not,
    /// Callers wait for it: an idle user of the lease should give it up.
    WhenIdle {
        waiting: usize,
    },
    Now,
}

impl<R: Resource> Ledger<R> {
    /// Puts a resource on the shelf, by its last use: a check does not make it look used.
    pub(super) fn shelve(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        self.put_on_shelf(slot, now);
        let entry = &self.slots[slot];
        // A resource that was needed so far may now be evicted.
        let coldest = self.shelf.front().filter(|_| self.is_evictable());
        let coldest = coldest.map_or(entry, |slot| &self.slots[*slot]);
        let dates = [
            self.limits
                .idle_timeout
                .map(|timeout| coldest.used_at + timeout),
            self.limits
                .heartbeat_interval
                .map(|interval| entry.proven_at() + interval),
            entry.expires_at,
            entry.retire_at,
        ];
        if let Some(at) = dates.into_iter().flatten().min() {
            self.due(at, orders);
        }
    }

    pub(super) fn put_on_shelf(&mut self, slot: SlotNo, now: Moment) {
        self.become_state(slot, State::Idle, now);
        let used_at = self.slots[slot].used_at;
        match self.shelf.back() {
            Some(last) if self.slots[*last].used_at > used_at => {
                let by_use = |other: &SlotNo| self.slots[*other].used_at <= used_at;
                let place = self.shelf.partition_point(by_use);
                self.shelf.insert(place, slot);
            }
            _ => self.shelf.push_back(slot),
        }
    }

    /// The idle slot that is lent next, or the one after `passed` others.
    pub(super) fn shelved(&self, passed: usize) -> Option<SlotNo> {
        let place = match self.limits.idle_order {
            IdleOrder::Hot => self.shelf.len().checked_sub(passed + 1)?,
            IdleOrder::Oldest => passed,
        };
        self.shelf.get(place).copied()
    }

    pub(super) fn unshelve(&mut self, slot: SlotNo) {
        if self.shelf.back() == Some(&slot) {
            self.shelf.pop_back();
            return;
        }
        // Nearly always it is the first slot, or among the last.
        if self.shelf.front() == Some(&slot) {
            self.shelf.pop_front();
            return;
        }
        let place = self.shelf.iter().rposition(|other| *other == slot);
        self.shelf
            .remove(place.expect("bug: every idle slot is on the shelf"));
    }

    /// Takes an idle resource off the shelf that can be lent as it is: the most recently used one
    /// that needs no check, or exactly the least recently used one. Worn-out resources are closed
    /// on the way.
    pub(super) fn pick(&mut self, now: Moment) -> Option<SlotNo> {
        let mut passed = 0;
        while let Some(slot) = self.shelved(passed).filter(|_| passed < PASSED) {
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

    /// Returns whether `pick` would find one.
    pub(super) fn has_fit(&self, now: Moment) -> bool {
        let mut hottest = (0..PASSED).map_while(|passed| self.shelved(passed));
        hottest.any(|slot| self.worn(slot, now).is_none() && !self.needs_vetting(slot, now))
    }

    pub(super) fn needs_vetting(&self, slot: SlotNo, now: Moment) -> bool {
        self.asks || self.is_unproven(slot, now)
    }

    /// Returns whether this resource must be checked before it is lent: it was not used for
    /// `check_after_idle`, or it was last proven alive before another one was found dead.
    pub(super) fn is_unproven(&self, slot: SlotNo, now: Moment) -> bool {
        let proven_at = self.slots[slot].proven_at();
        self.limits.check_after_idle.is_some_and(|after| {
            proven_at <= self.dead_at || now.saturating_duration_since(proven_at) >= after
        })
    }

    /// Returns why the resource in this slot must be closed, if it must.
    pub(super) fn worn(&self, slot: SlotNo, now: Moment) -> Option<CloseReason> {
        let slot = &self.slots[slot];
        if slot.retire_at.is_some_and(|at| at <= now) {
            Some(CloseReason::Invalidated)
        } else if slot.expires_at.is_some_and(|at| at <= now) {
            Some(CloseReason::Lifetime)
        } else if self.limits.max_uses.is_some_and(|most| slot.uses >= most) {
            Some(CloseReason::Uses)
        } else if self.is_too_large() {
            Some(CloseReason::Shrunk)
        } else {
            None
        }
    }

    fn is_too_large(&self) -> bool {
        self.occupied() > self.max_size && self.total() > self.max_size
    }

    /// Returns whether a lease that is kept for long should come back. Its uses do not matter: they
    /// count when it does.
    pub(crate) fn recalls(&self, slot: SlotNo, now: Moment) -> Recall {
        let entry = &self.slots[slot];
        let dates = [entry.retire_at, entry.expires_at];
        let is_over = dates.into_iter().flatten().any(|at| at <= now);
        if self.closed || is_over || self.is_too_large() {
            Recall::Now
        } else if !self.waiters.is_empty() && (self.is_exhausted() || self.places() == 0) {
            let waiting = self.waiters.len();
            Recall::WhenIdle { waiting }
        } else {
            Recall::Not
        }
    }
}
