//! Trays, as the ledger sees them: which slot is on which tray.
//!
//! While no waiter is queued, a slot that is lent may change hands by a tray, without the ledger. There are few trays, and any slot can be on
//! any of them. The shell takes a slot off its tray before anything is decided that depends on it, and tells the ledger what has happened
//! meanwhile.

use std::ops::Range;
use std::time::Duration;

use super::slot::{Asker, Label, SlotNo, State};
use super::{Ledger, Orders, Resource};
use crate::breaker::BreakerState;
use crate::config::{IdleOrder, Limits, Nested};
use crate::moment::Moment;
use crate::rt::Home;

/// The number of a tray.
pub(crate) type TrayNo = u32;

/// Where all trays are taken, one request in this many takes a tray from another slot. Often enough that the slots in use get trays, seldom
/// enough that requests which take turns over many slots do not pay for it.
const EVICT_EVERY: u32 = 8;

/// Which trays are taken, and by which slots.
#[derive(Debug)]
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
            slots: Vec::new(),
            free: Vec::new(),
            taken: 0,
            crowded: 0,
            next: 0,
        }
    }
}

/// On which terms a resource changes hands by its tray. A resource that does not meet them comes before the ledger.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Until when it may change hands as it is.
    pub(crate) fit_until: Option<Moment>,
    /// How often it may be lent.
    pub(crate) most_uses: u64,
    pub(crate) check_after_idle: Option<Duration>,
    pub(crate) home: Option<Home>,
}

/// What has happened to a slot while it was on its tray.
#[derive(Debug)]
pub(crate) struct OffTray<R> {
    /// Present if it is not lent.
    pub(crate) resource: Option<R>,
    /// The caller that has it, or had it last.
    pub(crate) asker: Asker,
    pub(crate) label: Option<Label>,
    /// Since when that caller has it.
    pub(crate) since: Moment,
    /// When it last came back, if it did.
    pub(crate) used_at: Option<Moment>,
    pub(crate) uses: u64,
}

/// Returns whether a pool with these settings uses trays at all. Not if the ledger must decide about every trip.
pub(crate) fn may_use_trays(limits: &Limits, hooked: bool) -> bool {
    let checked = limits.check_on_return || limits.check_after_idle == Some(Duration::ZERO);
    limits.idle_order == IdleOrder::Hot && limits.nested != Nested::Deny && !checked && !hooked
}

impl<R: Resource> Ledger<R> {
    /// Notes whether an upkeep task runs. Only upkeep looks after resources on trays.
    pub(crate) fn keep_up(&mut self, kept_up: bool) {
        if self.kept_up != kept_up {
            self.kept_up = kept_up;
        }
    }

    /// Returns whether the trays must be cleared before a request can be answered. Not while a fit resource is on the shelf.
    pub(crate) fn needs_trays(&self, now: Moment) -> bool {
        self.trays.taken > 0 && !self.has_fit(now)
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

    /// The slot on this tray was taken off it: from here on it is as if it had never been there.
    pub(crate) fn taken_off(&mut self, tray: TrayNo, off: OffTray<R>) {
        let slot = self.trays.slots[tray as usize]
            .take()
            .expect("bug: only a slot on a tray is taken off it");
        self.trays.free.push(tray);
        self.trays.taken -= 1;
        let entry = &mut self.slots[slot];
        entry.tray = None;
        self.lent += off.uses - entry.uses;
        entry.uses = off.uses;
        if let Some(at) = off.used_at {
            entry.used_at = at;
        }
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

    /// Finds a tray for a slot that was just lent to a caller that did not wait, if it may have one. It may be another slot's: then that
    /// one must be taken off first.
    pub(crate) fn find_tray(&mut self, slot: SlotNo) -> Option<TrayNo> {
        let spare_counts = self.limits.min_idle > 0 && self.occupied() < self.max_size;
        if !self.kept_up
            || self.trays.count == 0
            || !self.waiters.is_empty()
            || spare_counts
            || self.slots[slot].retire_at.is_some()
            || self.breaker.state != BreakerState::Active
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

    /// Puts a slot on a tray that is free by now.
    pub(crate) fn put_on_tray(
        &mut self,
        slot: SlotNo,
        tray: TrayNo,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Terms {
        self.become_state(slot, State::OnTray, now);
        let trays = &mut self.trays;
        trays.slots[tray as usize] = Some(slot);
        // A tray that was just taken from another slot is the last on the list of free ones.
        if trays.free.last() == Some(&tray) {
            trays.free.pop();
        }
        trays.taken += 1;
        self.slots[slot].tray = Some(tray);
        // Whatever happens to it on its tray is due after this, so that upkeep, which clears the trays, comes in time.
        let soonest = [self.limits.idle_timeout, self.limits.heartbeat_interval];
        let soonest = soonest.into_iter().flatten().map(|after| now + after);
        let dates = soonest.chain(self.slots[slot].expires_at);
        if let Some(at) = dates.min() {
            self.due(at, orders);
        }
        let entry = &self.slots[slot];
        Terms {
            fit_until: entry.expires_at,
            most_uses: self.limits.max_uses.unwrap_or(u64::MAX),
            check_after_idle: self.limits.check_after_idle,
            home: entry.home.clone(),
        }
    }
}
