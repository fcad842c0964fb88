//! What is set aside: while nobody waits, a slot may change hands by its tray, and the book is not opened for it.
//!
//! A slot is set aside when it is lent to somebody who did not wait, and fetched before anything is decided that depends on it: the
//! shell tells the ledger what has happened meanwhile.

use std::time::Duration;

use super::slot::{Asker, Label, SlotNo, State};
use super::{Ledger, Orders, Resource};
use crate::breaker::BreakerState;
use crate::config::{IdleOrder, Limits, Nested};
use crate::moment::Moment;
use crate::rt::Home;

/// On which terms a slot is set aside. What does not keep to them comes before the ledger.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Until when it may change hands as it is.
    pub(crate) fit_until: Option<Moment>,
    /// How often it may be lent.
    pub(crate) most_uses: u64,
    pub(crate) check_after_idle: Option<Duration>,
    pub(crate) home: Option<Home>,
}

/// What has happened to a slot while it was set aside.
#[derive(Debug)]
pub(crate) struct Fetched<R> {
    /// Present if nobody has it now.
    pub(crate) resource: Option<R>,
    /// Who has it, or had it last.
    pub(crate) asker: Asker,
    pub(crate) label: Option<Label>,
    /// Since when they have it.
    pub(crate) since: Moment,
    /// When it last came back, if it did.
    pub(crate) used_at: Option<Moment>,
    pub(crate) uses: u64,
}

/// May slots of a pool with these settings be set aside at all? Not if every trip must be looked at.
pub(crate) fn may_be_set_aside(limits: &Limits, hooked: bool) -> bool {
    let checked = limits.check_on_return || limits.check_after_idle == Some(Duration::ZERO);
    limits.idle_order == IdleOrder::Hot && limits.nested != Nested::Deny && !checked && !hooked
}

impl<R: Resource> Ledger<R> {
    /// Does somebody keep the pool up? What is set aside is looked after by nobody else.
    pub(crate) fn keep_up(&mut self, kept_up: bool) {
        if self.kept_up != kept_up {
            self.kept_up = kept_up;
        }
    }

    /// Must what is set aside be fetched before a request can be answered? Not while something fit is on the shelf.
    pub(crate) fn must_fetch(&self, now: Moment) -> bool {
        let fit =
            |slot: &SlotNo| self.worn(*slot, now).is_none() && !self.needs_vetting(*slot, now);
        !self.aside.is_empty() && !self.shelf.iter().any(fit)
    }

    /// One of the slots that are set aside.
    pub(crate) fn next_aside(&self) -> Option<SlotNo> {
        self.aside.last().copied()
    }

    /// A slot that was set aside is told of: from here on it is as if it had never been away.
    pub(crate) fn fetched(&mut self, slot: SlotNo, fetched: Fetched<R>) {
        let place = self.aside.iter().rposition(|other| *other == slot);
        self.aside
            .swap_remove(place.expect("bug: only what is set aside is fetched"));
        let entry = &mut self.slots[slot];
        entry.uses = fetched.uses;
        if let Some(at) = fetched.used_at {
            entry.used_at = at;
        }
        if fetched.resource.is_some() {
            entry.resource = fetched.resource;
            entry.asker = None;
            self.put_on_shelf(slot, fetched.since);
        } else {
            entry.label = fetched.label;
            entry.asker = Some(fetched.asker);
            self.become_state(slot, State::Leased, fetched.since);
        }
    }

    /// Sets aside what was just lent, if it may be.
    pub(super) fn set_aside(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        let spare_counts = self.limits.min_idle > 0 && self.occupied() < self.max_size;
        if !self.kept_up
            || slot >= self.trays
            || spare_counts
            || self.slots[slot].retire_at.is_some()
            || self.breaker.state != BreakerState::Active
        {
            return;
        }
        self.become_state(slot, State::Aside, now);
        self.aside.push(slot);
        // Whatever happens to it by its tray is due after this, so that upkeep, which fetches it, comes in time.
        let soonest = [self.limits.idle_timeout, self.limits.heartbeat_interval];
        let soonest = soonest.into_iter().flatten().map(|after| now + after);
        let entry = &self.slots[slot];
        let dates = soonest.chain(entry.expires_at);
        if let Some(at) = dates.min() {
            self.due(at, orders);
        }
    }

    pub(crate) fn is_aside(&self, slot: SlotNo) -> bool {
        self.slots[slot].state == State::Aside
    }

    /// The terms of a slot that was just set aside.
    pub(crate) fn terms(&self, slot: SlotNo) -> Terms {
        let entry = &self.slots[slot];
        Terms {
            fit_until: entry.expires_at,
            most_uses: self.limits.max_uses.unwrap_or(u64::MAX),
            check_after_idle: self.limits.check_after_idle,
            home: entry.home.clone(),
        }
    }
}
