//! Owed work: the opens, checks, cleans and closes that the pool has to do, and those under way.
//!
//! The ledger owes work and the shell does it, in a task of a caller that has a runtime. So a
//! destructor can end a lease without starting a task.

use super::slot::{Slot, SlotNo, State};
use super::{HELD_UP_AFTER, Ledger, Resource};
use crate::status::CloseReason;
use crate::time::Moment;

/// Something asynchronous that the pool owes itself, for the resource of one slot.
#[derive(Debug)]
pub(crate) struct Work<R> {
    pub(crate) slot: SlotNo,
    pub(crate) job: Job<R>,
}

#[derive(Debug)]
pub(crate) enum Job<R> {
    Open,
    /// Find out whether an idle resource may be lent: by a check, by the hook, or by both.
    Vet {
        resource: R,
        check: bool,
        ask: bool,
    },
    /// Make a returned resource fit for the next user: clean it, or only check it or ask the hook.
    Clean {
        resource: R,
        clean: bool,
        probe: bool,
    },
    Close {
        resource: R,
        reason: CloseReason,
    },
}

impl<R: Resource> Ledger<R> {
    /// Reserves a slot and owes an open for it.
    pub(super) fn reserve(&mut self, refill: bool, now: Moment) {
        let slot = self.vacant.pop().unwrap_or_else(|| self.add_slot(now));
        self.become_state(slot, State::Opening, now);
        self.slots[slot].refill = refill;
        self.slots[slot].retire_at = None;
        self.owe(slot, Job::Open);
    }

    fn add_slot(&mut self, now: Moment) -> SlotNo {
        let count = self.slots.len();
        if count == self.slots.capacity() {
            // Slots are large, and there will never be more than `max_size`.
            let most = self.max_size.saturating_sub(count).max(1);
            self.slots.reserve_exact(count.max(4).min(most));
        }
        self.slots.push(Slot::vacant(now));
        self.states[State::Vacant as usize] += 1;
        count
    }

    /// Owes a check of an idle resource if it needs one, and the question to the hook.
    pub(super) fn vet(&mut self, slot: SlotNo, now: Moment) {
        let check = self.is_unproven(slot, now);
        self.unshelve(slot);
        self.examine(slot, check, self.asks, now);
    }

    /// Owes a check, the question to the hook, or both, for a resource that is off the shelf.
    pub(super) fn examine(&mut self, slot: SlotNo, check: bool, ask: bool, now: Moment) {
        self.become_state(slot, State::Checking, now);
        let resource = self.take_resource(slot);
        self.owe(
            slot,
            Job::Vet {
                resource,
                check,
                ask,
            },
        );
    }

    fn owe(&mut self, slot: SlotNo, job: Job<R>) {
        self.owed.push_back(Work { slot, job });
    }

    /// Takes a resource out of service. Its close is owed, and its slot is free after that.
    pub(super) fn retire(&mut self, slot: SlotNo, reason: CloseReason, now: Moment) {
        let resource = self.take_resource(slot);
        let job = self.closing(slot, resource, reason, now);
        self.owe(slot, job);
    }

    pub(super) fn closing(
        &mut self,
        slot: SlotNo,
        resource: R,
        reason: CloseReason,
        now: Moment,
    ) -> Job<R> {
        self.become_state(slot, State::Closing, now);
        self.counts.closes.add(reason);
        Job::Close { resource, reason }
    }

    fn take_resource(&mut self, slot: SlotNo) -> R {
        let resource = self.slots[slot].resource.take();
        resource.expect("bug: a resource that needs work is in its slot")
    }

    /// Returns whether one more resource may be opened now.
    pub(super) fn has_room(&self, now: Moment) -> bool {
        self.occupied() < self.max_size && self.opening(now) < self.limits.max_opening
    }

    /// How many opens run and are not held up.
    pub(super) fn opening(&self, now: Moment) -> usize {
        if self.count(State::Opening) == 0 {
            return 0;
        }
        let is_opening = |slot: &SlotNo| self.slots[*slot].state == State::Opening;
        self.working(now).filter(is_opening).count()
    }

    /// The slots that are being opened, checked or cleaned, and are not held up.
    pub(super) fn working(&self, now: Moment) -> impl Iterator<Item = SlotNo> {
        let slots = self.working.iter().copied();
        slots.filter(move |slot| {
            now.saturating_duration_since(self.slots[*slot].since) < HELD_UP_AFTER
        })
    }

    /// Lists a slot whose work begins, or takes a slot off the list whose work has ended.
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
