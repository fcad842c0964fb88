//! Work: opens, checks, cleans and closes, owed and under way.

use std::collections::VecDeque;

use super::slot::{Slot, SlotNo, State};
use super::{HELD_UP_AFTER, Ledger, Orders, Resource, Work};
use crate::moment::Moment;
use crate::status::Reason;

impl<R: Resource> Ledger<R> {
    /// The next piece of owed work, for a caller that has a runtime.
    pub(crate) fn next_work(&mut self) -> Option<Work<R>> {
        let work = self.owed.pop_front();
        if self.owed.is_empty() {
            // An idle pool owes nothing, and needs no memory for it.
            self.owed = VecDeque::new();
        }
        work
    }

    /// Wakes the callers that may do the owed work: the first waiters, and the futures that wait for resources to come or go. There are
    /// several, because any of them may be on a runtime that is not driven.
    pub(crate) fn call_helpers(&mut self) -> Orders<R> {
        let mut orders = Orders::default();
        self.wake_first(&mut orders);
        self.tell_watchers(&mut orders);
        orders
    }

    /// Lets the first waiters look again.
    pub(super) fn wake_first(&mut self, orders: &mut Orders<R>) {
        const HELPERS: usize = 64;
        for waker in self.waiters.wakers(HELPERS) {
            orders.wake(waker);
        }
    }

    /// Returns whether one more may be opened now.
    pub(super) fn has_room(&self, now: Moment) -> bool {
        self.occupied() < self.max_size && self.opening(now) < self.limits.max_opening
    }

    /// Opens that run and are not held up.
    pub(super) fn opening(&self, now: Moment) -> usize {
        if self.count(State::Opening) == 0 {
            return 0;
        }
        self.working(now)
            .filter(|slot| self.slots[*slot].state == State::Opening)
            .count()
    }

    /// Slots that are being opened, checked or cleaned, and are not held up.
    pub(super) fn working(&self, now: Moment) -> impl Iterator<Item = SlotNo> {
        let slots = self.working.iter().copied();
        slots.filter(move |slot| {
            now.saturating_duration_since(self.slots[*slot].since) < HELD_UP_AFTER
        })
    }

    /// Reserves a slot and owes an open for it.
    pub(super) fn reserve(&mut self, refill: bool, now: Moment) {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            let count = self.slots.len();
            if count == self.slots.capacity() {
                // Slots are large, and there will never be more than this.
                let most = self.max_size.saturating_sub(count).max(1);
                self.slots
                    .reserve_exact(count.clamp(4, most.max(4)).min(most));
            }
            self.slots.push(Slot::vacant(now));
            self.states[State::Vacant as usize] += 1;
            count
        });
        self.become_state(slot, State::Opening, now);
        self.slots[slot].refill = refill;
        self.slots[slot].retire_at = None;
        self.owed.push_back(Work::Open { slot });
    }

    /// Takes the resource in this slot out of service: its close is owed, and the slot is free when that is done.
    pub(super) fn retire(&mut self, slot: SlotNo, reason: Reason, now: Moment) {
        let resource = self.slots[slot]
            .resource
            .take()
            .expect("bug: a resource that is retired is in its slot");
        let work = self.closing(slot, resource, reason, now);
        self.owed.push_back(work);
    }

    pub(super) fn closing(
        &mut self,
        slot: SlotNo,
        resource: R,
        reason: Reason,
        now: Moment,
    ) -> Work<R> {
        self.become_state(slot, State::Closing, now);
        self.counts.closed.add(reason);
        Work::Close {
            slot,
            id: self.slots[slot].id,
            resource,
            reason,
        }
    }

    /// Lists a slot whose work begins, or takes one off the list whose work has ended.
    pub(super) fn list_work(&mut self, slot: SlotNo, works: bool) {
        if works {
            self.slots[slot].work_index = self.working.len() as u32;
            self.working.push(slot);
            return;
        }
        let index = self.slots[slot].work_index as usize;
        self.working.swap_remove(index);
        if let Some(moved) = self.working.get(index) {
            self.slots[*moved].work_index = index as u32;
        }
    }
}
