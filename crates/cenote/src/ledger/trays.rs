//! Trays, as the ledger sees them: which slot is on which tray.
//!
//! While no waiter is queued, a slot that is lent may change hands by a tray, without the ledger.
//! There are few trays, and any slot can be on any of them. The shell takes a slot off its tray
//! before the ledger decides about it, and tells the ledger what has happened there.

use std::ops::Range;
use std::time::Duration;

use super::slot::{Asker, Label, SlotNo, State};
use super::{Ask, Ledger, Orders, Resource};
use crate::breaker::BreakerState;
use crate::config::{IdleOrder, Limits, Nested};
use crate::time::{Moment, nanoseconds};

/// The number of a tray.
pub(crate) type TrayNo = u32;

/// Where all trays are taken, one request in this many takes a tray from another slot. With one in
/// eight a caller that uses the same resource again takes 30 ns in a pool of any size. With every
/// request, callers that take turns over many resources would take 370 ns, and 200 with one in
/// eight.
const EVICT_EVERY: u32 = 8;

/// Which trays are taken, and by which slots.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// How many trays there are.
    count: TrayNo,
    /// By tray.
    slots: Vec<Option<SlotNo>>,
    free: Vec<TrayNo>,
    /// How many are taken.
    taken: usize,
    /// Requests that found no free tray.
    crowded: u32,
    /// The tray that is given to another slot next.
    next: TrayNo,
}

impl Taken {
    pub(super) fn new(count: usize) -> Self {
        Self {
            count: count as TrayNo,
            ..Self::default()
        }
    }
}

/// A slot on its tray: on which terms its resource changes hands there, and what has happened to
/// it.
#[derive(Debug)]
pub(crate) struct OnTray<R> {
    pub(crate) slot: SlotNo,
    /// Present while it is not lent.
    pub(crate) resource: Option<R>,
    /// Until when it may change hands as it is, how many nanoseconds it may lie unused, and how
    /// often it may be lent.
    pub(crate) fit_until: Moment,
    pub(crate) stale_after: u64,
    pub(crate) most_uses: u64,
    /// The caller that has it, or had it last, and since when.
    pub(crate) asker: Asker,
    pub(crate) since: Moment,
    pub(crate) label: Option<Label>,
    pub(crate) used_at: Moment,
    pub(crate) uses: u64,
    /// For how many nanoseconds it was lent, in the leases that are over.
    pub(crate) held: u64,
}

/// Returns whether a pool with these settings uses trays at all. Not if the ledger must decide
/// about every trip.
pub(crate) fn may_use_trays(limits: &Limits, hooked: bool) -> bool {
    let checked = limits.check_on_return || limits.check_after_idle == Some(Duration::ZERO);
    limits.idle_order == IdleOrder::Hot && limits.nested != Nested::Deny && !checked && !hooked
}

impl<R: Resource> Ledger<R> {
    /// Notes whether an upkeep task runs. Only upkeep looks after resources on trays.
    pub(crate) fn note_upkeep(&mut self, runs: bool) {
        if self.upkeep_runs != runs {
            self.upkeep_runs = runs;
        }
    }

    /// Returns whether the trays must be cleared before a request can be answered. Not while a fit
    /// resource is on the shelf, unless places count: an idle resource on a tray counts as lent.
    pub(crate) fn needs_trays(&self, ask: Ask, now: Moment) -> bool {
        let places_count = self.reserved > 0 || ask == Ask::Place;
        self.trays.taken > 0 && (places_count || !self.has_fit(now))
    }

    /// The trays that may be taken.
    pub(crate) fn trays(&self) -> Range<TrayNo> {
        match self.trays.taken {
            0 => 0..0,
            _ => 0..self.trays.slots.len() as TrayNo,
        }
    }

    pub(crate) fn is_tray_taken(&self, tray: TrayNo) -> bool {
        self.trays.slots[tray as usize].is_some()
    }

    /// The tray of this slot.
    pub(crate) fn tray_of(&self, slot: SlotNo) -> Option<TrayNo> {
        self.slots[slot].tray
    }

    /// The slot on this tray was taken off it.
    pub(crate) fn taken_off(&mut self, tray: TrayNo, off: OnTray<R>) {
        let slot = self.trays.slots[tray as usize].take();
        let slot = slot.expect("bug: only a slot on a tray is taken off it");
        self.trays.free.push(tray);
        self.trays.taken -= 1;
        let entry = &mut self.slots[slot];
        entry.tray = None;
        self.lent += off.uses - entry.uses;
        self.held_time += off.held;
        entry.uses = off.uses;
        entry.used_at = off.used_at;
        if off.resource.is_some() {
            entry.resource = off.resource;
            entry.asker = None;
            self.put_on_shelf(slot, off.since);
        } else {
            entry.label = off.label;
            entry.asker = Some(off.asker);
            self.become_state(slot, State::Leased, off.since);
        }
    }

    /// Finds a tray for a slot that was just lent to a caller that did not wait, if it may have
    /// one. Another slot may be on that tray, and must be taken off first.
    pub(crate) fn find_tray(&mut self, slot: SlotNo) -> Option<TrayNo> {
        let spare_counts = self.limits.min_idle > 0 && self.occupied() < self.max_size;
        if !self.upkeep_runs
            || self.trays.count == 0
            || !self.waiters.is_empty()
            || spare_counts
            || self.slots[slot].retire_at.is_some()
            || self.breaker.state != BreakerState::Active
            || self.is_watched_closely()
        {
            return None;
        }
        let trays = &mut self.trays;
        if let Some(tray) = trays.free.pop() {
            return Some(tray);
        }
        let made = trays.slots.len() as TrayNo;
        if made < trays.count {
            trays.slots.push(None);
            return Some(made);
        }
        trays.crowded += 1;
        if trays.crowded < EVICT_EVERY {
            return None;
        }
        trays.crowded = 0;
        trays.next = (trays.next + 1) % trays.count;
        Some(trays.next)
    }

    /// Puts a slot that was just lent to `asker` on a tray that is free by now.
    pub(crate) fn put_on_tray(
        &mut self,
        slot: SlotNo,
        tray: TrayNo,
        asker: Asker,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> OnTray<R> {
        self.become_state(slot, State::OnTray, now);
        let trays = &mut self.trays;
        trays.slots[tray as usize] = Some(slot);
        // A tray that was just taken from another slot is the last on the list of free ones.
        if trays.free.last() == Some(&tray) {
            trays.free.pop();
        }
        trays.taken += 1;
        let Self { limits, slots, .. } = self;
        let entry = &mut slots[slot];
        entry.tray = Some(tray);
        let on_tray = OnTray {
            slot,
            resource: None,
            fit_until: entry.expires_at.unwrap_or(Moment::NEVER),
            stale_after: limits.check_after_idle.map_or(u64::MAX, nanoseconds),
            most_uses: limits.max_uses.unwrap_or(u64::MAX),
            asker,
            since: now,
            label: None,
            used_at: entry.used_at,
            uses: entry.uses,
            held: 0,
        };
        // Upkeep clears the trays. It has to come before anything can be due on this one.
        let soonest = [limits.idle_timeout, limits.heartbeat_interval];
        let soonest = soonest.into_iter().flatten().map(|after| now + after);
        if let Some(at) = soonest.chain(entry.expires_at).min() {
            self.due(at, orders);
        }
        on_tray
    }
}
