//! Operations on the whole pool.

use std::mem;
use std::time::Duration;

use super::slot::{SlotNo, State};
use super::{Ledger, Orders, Refusal, Resource, Work};
use crate::moment::Moment;
use crate::status::Reason;

impl<R: Resource> Ledger<R> {
    /// Grows at once; shrinks by the idle resources now, and by the others as they come back. Returns the size before.
    pub(crate) fn resize(&mut self, max_size: usize, now: Moment) -> (usize, Orders<R>) {
        let mut orders = Orders::default();
        let before = mem::replace(&mut self.max_size, max_size);
        while self.total() > max_size {
            let Some(slot) = self.shelf.front().copied() else {
                break;
            };
            self.unshelve(slot);
            self.retire(slot, Reason::Shrunk, now);
        }
        self.serve(now, &mut orders);
        self.due_next(now, &mut orders);
        (before, self.finish(orders, now))
    }

    /// Retires everything that is open or being opened now, spread evenly over `over`.
    pub(crate) fn invalidate(&mut self, over: Duration, now: Moment) -> Orders<R> {
        let mut orders = Orders::default();
        let living: Vec<_> = (0..self.slots.len())
            .filter(|slot| !matches!(self.slots[*slot].state, State::Vacant | State::Closing))
            .collect();
        let step = over / u32::try_from(living.len().max(1)).unwrap_or(u32::MAX);
        for (nth, slot) in living.into_iter().enumerate() {
            let after = step.saturating_mul(u32::try_from(nth).unwrap_or(u32::MAX));
            let at = match after {
                // The thread that brings it back may have read the clock before this.
                Duration::ZERO => Some(Moment::PAST),
                after => now.checked_add(after),
            };
            // A moment beyond the end of time never comes.
            let Some(at) = at else { break };
            let entry = &mut self.slots[slot];
            entry.retire_at = Some(entry.retire_at.map_or(at, |before| before.min(at)));
            if entry.state == State::Idle && at <= now {
                self.unshelve(slot);
                self.retire(slot, Reason::Invalidated, now);
            }
        }
        self.serve(now, &mut orders);
        self.due_next(now, &mut orders);
        self.finish(orders, now)
    }

    pub(crate) fn suspend(&mut self) {
        self.suspended = true;
    }

    pub(crate) fn resume(&mut self, now: Moment) -> Orders<R> {
        let mut orders = Orders::default();
        self.suspended = false;
        self.serve(now, &mut orders);
        self.due_next(now, &mut orders);
        self.finish(orders, now)
    }

    /// Takes an idle resource out to be looked at. It comes back by `put_back` or `judged`.
    pub(crate) fn look_at(&mut self, slot: SlotNo, id: u64, now: Moment) -> Option<R> {
        let entry = self.slots.get(slot)?;
        if entry.state != State::Idle || entry.id != id {
            return None;
        }
        self.unshelve(slot);
        self.become_state(slot, State::Checking, now);
        self.slots[slot].resource.take()
    }

    /// What is idle now, by slot and number.
    pub(crate) fn idle(&self) -> Vec<(SlotNo, u64)> {
        self.shelf
            .iter()
            .map(|slot| (*slot, self.slots[*slot].id))
            .collect()
    }

    /// Closes the pool. Returns whether it was open. Every waiter is told, also one that has not claimed its grant yet.
    pub(crate) fn close(&mut self, now: Moment) -> (bool, Orders<R>) {
        let mut orders = Orders::default();
        if mem::replace(&mut self.closed, true) {
            return (false, self.finish(orders, now));
        }
        let unclaimed = self.turn_away(|_| Refusal::Closed, now, &mut orders);
        let idle = mem::take(&mut self.shelf);
        for slot in unclaimed.into_iter().chain(idle) {
            self.retire(slot, Reason::PoolClosed, now);
        }
        // Opens that have not begun are not begun.
        for work in mem::take(&mut self.owed) {
            match work {
                Work::Open { slot } => self.vacate(slot, now, &mut orders),
                Work::Vet { .. } | Work::Clean { .. } | Work::Close { .. } => {
                    self.owed.push_back(work)
                }
            }
        }
        self.tell_watchers(&mut orders);
        (true, self.finish(orders, now))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Nothing is out, and nothing is being closed any more.
    pub(crate) fn is_drained(&self) -> bool {
        self.occupied() == 0
    }

    /// Of a closed pool, where nothing is idle: how many slots are neither free nor leased.
    pub(crate) fn unfinished(&self) -> usize {
        self.occupied() - self.count(State::Leased)
    }

    /// Refuses every waiter, also one that has not claimed its grant yet. Returns the slots that were granted to those.
    pub(super) fn turn_away(
        &mut self,
        refusal: fn(&Self) -> Refusal<R::Failure>,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Vec<SlotNo> {
        let mut unclaimed = Vec::new();
        for slot in 0..self.slots.len() {
            let Some(mailbox) = &self.slots[slot].mailbox else {
                continue;
            };
            if !mailbox.has_grant() {
                continue;
            }
            // The waiter was woken when the grant was delivered.
            match mailbox.revoke(refusal(self)) {
                Ok(grant) => unclaimed.push(self.take_back(grant, now)),
                Err(refusal) => orders.discard(Err(refusal)),
            }
        }
        while let Some(waiter) = self.waiters.take_first() {
            self.wait_time += now.nanoseconds_since(waiter.since);
            waiter.mailbox.deliver(Err(refusal(self)));
            orders.wake_waiter(waiter.waker);
        }
        self.unserved_since = None;
        unclaimed
    }
}
