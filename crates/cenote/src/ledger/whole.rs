//! What is done to the whole pool at once.

use std::mem;
use std::time::Duration;

use super::seat::SeatNo;
use super::slot::{SlotNo, State};
use super::{Fate, Grant, Ledger, Orders, Resource, Work};
use crate::moment::Moment;
use crate::status::Reason;

impl<R: Resource> Ledger<R> {
    /// Grows at once; shrinks by what is idle now, and by the rest as it comes home. Answers with the size before.
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
                // Whoever brings it may have read the clock before this.
                Duration::ZERO => Some(Moment::PAST),
                after => now.checked_add(after),
            };
            // What lies beyond the end of time never comes.
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

    /// Closes the pool; answers whether it was open. Everybody who waits is told, also those who were granted something and have not
    /// taken it yet.
    pub(crate) fn close(&mut self, now: Moment) -> (bool, Orders<R>) {
        let mut orders = Orders::default();
        if mem::replace(&mut self.closed, true) {
            return (false, self.finish(orders, now));
        }
        let unclaimed = self.turn_away(Fate::Closed, &mut orders);
        let idle = mem::take(&mut self.shelf);
        for slot in unclaimed.into_iter().chain(idle) {
            self.retire(slot, Reason::PoolClosed, now);
        }
        // Opens that nobody has begun are not begun.
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

    /// What was granted goes elsewhere.
    pub(super) fn send_away(&mut self, seat: SeatNo, fate: Fate, grant: Grant<R>) {
        let slot = &mut self.slots[grant.slot];
        self.queue.waits_on(seat, slot.since);
        self.queue.at_mut(seat).fate = fate;
        slot.take_back(grant);
    }

    /// Sends everybody who waits away. Answers with the slots that were granted to some of them and not claimed.
    pub(super) fn turn_away(&mut self, fate: Fate, orders: &mut Orders<R>) -> Vec<SlotNo> {
        let mut unclaimed = Vec::new();
        for seat in self.queue.granted() {
            let waiter = self.queue.at_mut(seat);
            if let Some(grant) = waiter.mailbox.refuse(waiter.serial()) {
                unclaimed.push(grant.slot);
                self.send_away(seat, fate, grant);
            }
        }
        while let Some((_, waiter)) = self.queue.settle_first(fate) {
            orders.wake_soon(waiter.waker.take());
        }
        unclaimed
    }
}
