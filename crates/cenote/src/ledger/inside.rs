//! A look inside the ledger: each slot, and the first waiters.

use super::slot::{SlotNo, State};
use super::{Ledger, Resource};
use crate::advice::Facts;
use crate::status::{SlotState, SlotView, WaiterView};
use crate::time::Moment;

impl<R: Resource> Ledger<R> {
    /// Every slot that is not vacant, and as many vacant ones as there is room for. No slot is on a
    /// tray.
    ///
    /// A reserved place has no slot of its own. It is shown as a vacant slot, as long as there are
    /// vacant ones.
    pub(crate) fn slot_views(&self, now: Moment) -> Vec<SlotView> {
        let mut room = self.max_size.saturating_sub(self.occupied());
        let mut reserved = self.reserved;
        let mut views = Vec::with_capacity(self.occupied() + room);
        for number in 0..self.slots.len().max(self.max_size) {
            let mut view = self.slot_view(number, now);
            if view.state == SlotState::Vacant {
                if room == 0 {
                    continue;
                }
                room -= 1;
                if reserved > 0 {
                    reserved -= 1;
                    view.state = SlotState::Reserved;
                    view.since = None;
                }
            }
            views.push(view);
        }
        views
    }

    fn slot_view(&self, number: SlotNo, now: Moment) -> SlotView {
        let Some(slot) = self.slots.get(number) else {
            return SlotView {
                number,
                state: SlotState::Vacant,
                id: None,
                since: None,
            };
        };
        let (state, holds) = match slot.state {
            State::Vacant => (SlotState::Vacant, false),
            State::Opening => (SlotState::Opening, false),
            State::Idle => (SlotState::Idle, true),
            State::Leased | State::OnTray => (SlotState::Leased, true),
            State::Checking => (SlotState::Checking, true),
            State::Cleaning => (SlotState::Cleaning, true),
            State::Closing => (SlotState::Closing, true),
        };
        // A slot that comes off a tray has been idle since its last use.
        let since = match slot.state {
            State::Idle => slot.since.max(slot.used_at),
            _ => slot.since,
        };
        SlotView {
            number,
            state,
            id: holds.then_some(slot.id),
            since: Some(now.saturating_duration_since(since)),
        }
    }

    /// The first waiters.
    pub(crate) fn waiter_views(&self, limit: usize, now: Moment) -> Vec<WaiterView> {
        let first = self.waiters.line().take(limit);
        let views = first.map(|waiter| WaiterView {
            site: waiter.asker.site,
            waited: now.saturating_duration_since(waiter.since),
        });
        views.collect()
    }

    /// What advice depends on.
    pub(crate) fn facts(&self, now: Moment) -> Facts {
        let since = |at: Moment| now.saturating_duration_since(at);
        let opening = self.working.iter().map(|slot| &self.slots[*slot]);
        let opening = opening.filter(|slot| slot.state == State::Opening);
        Facts {
            status: self.status(now),
            age: since(self.built_at),
            holders: self.groups(now),
            nested: self.is_in_circle(),
            suspended: self.suspended,
            breaker: self.breaker.state,
            breaker_for: since(self.breaker.since),
            failing_for: self.failing.as_ref().map(|failing| since(failing.since)),
            opening_for: opening.map(|slot| since(slot.since)).max(),
            leak_after: self.limits.leak_after,
        }
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.suspended
    }
}
