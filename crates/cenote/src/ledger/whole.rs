//! Entry: operations on the whole pool. Resize, invalidate, suspend, close, and the breaker.

use std::mem;
use std::time::Duration;

use super::slot::{SlotNo, State};
use super::{Job, Ledger, Mail, Many, Orders, Resource};
use crate::breaker::BreakerState;
use crate::error::{AcquireError, OpenError};
use crate::status::CloseReason;
use crate::time::Moment;

/// The breaker, as the ledger knows it.
#[derive(Debug)]
pub(crate) struct Breaker<E> {
    pub(crate) state: BreakerState,
    pub(crate) since: Moment,
    /// When the strategy wants to be asked again whether to recover.
    pub(crate) ask_at: Option<Moment>,
    /// It recovers, and the pool has not proven yet that the backend is back.
    pub(crate) proving: bool,
    /// The open error that was current when it tripped.
    pub(crate) cause: Option<OpenError<E>>,
}

impl<R: Resource> Ledger<R> {
    /// Grows at once; shrinks by the idle resources now, and by the others as they come back.
    /// Returns the size before.
    pub(crate) fn resize(&mut self, max_size: usize, now: Moment, orders: &mut Orders<R>) -> usize {
        let before = mem::replace(&mut self.max_size, max_size);
        while self.total() > max_size {
            let Some(slot) = self.shelf.pop_front() else {
                break;
            };
            self.retire(slot, CloseReason::Shrunk, now);
        }
        self.changed(now, orders);
        before
    }

    /// Retires up to `most` resources that no holder has: idle ones now, the others when the check
    /// or the clean is done. Returns how many. A slot that is being opened holds no resource yet,
    /// and its open may wait for the very place that the caller of this wants to make free.
    pub(crate) fn shed(&mut self, most: usize, now: Moment, orders: &mut Orders<R>) -> usize {
        let mut shed = 0;
        while shed < most {
            let Some(slot) = self.shelf.pop_front() else {
                break;
            };
            self.retire(slot, CloseReason::Shrunk, now);
            shed += 1;
        }
        for slot in self.working.iter().copied() {
            let entry = &mut self.slots[slot];
            let exists = entry.state != State::Opening;
            if shed < most && exists && entry.retire_at.is_none_or(|at| at > now) {
                entry.retire_at = Some(Moment::PAST);
                shed += 1;
            }
        }
        self.changed(now, orders);
        shed
    }

    /// The rules for lending have changed: serves the waiters, and lets upkeep know.
    fn changed(&mut self, now: Moment, orders: &mut Orders<R>) {
        self.serve(now, orders);
        self.due_next(now, orders);
        self.end(orders, now);
    }

    /// Retires all resources that are open or being opened now, spread evenly over `over`.
    pub(crate) fn invalidate(&mut self, over: Duration, now: Moment, orders: &mut Orders<R>) {
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
                self.retire(slot, CloseReason::Invalidated, now);
            }
        }
        self.changed(now, orders);
    }

    pub(crate) fn suspend(&mut self) {
        self.suspended = true;
    }

    pub(crate) fn resume(&mut self, now: Moment, orders: &mut Orders<R>) {
        self.suspended = false;
        self.changed(now, orders);
    }

    /// From now on `overloaded` is called instead of `open_failed`.
    pub(crate) fn wait_for_places(&mut self) {
        self.patient = true;
    }

    pub(crate) fn waits_for_places(&self) -> bool {
        self.patient
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

    /// The idle resources, by slot and number.
    pub(crate) fn idle(&self) -> Vec<(SlotNo, u64)> {
        self.shelf
            .iter()
            .map(|slot| (*slot, self.slots[*slot].id))
            .collect()
    }

    /// Closes the pool. Returns whether it was open. Every waiter is told, also one that has not
    /// claimed its grant yet.
    pub(crate) fn close(&mut self, now: Moment, orders: &mut Orders<R>) -> bool {
        if mem::replace(&mut self.closed, true) {
            self.end(orders, now);
            return false;
        }
        let closed = |ledger: &Self| AcquireError::Closed {
            pool: ledger.name.clone(),
        };
        let unclaimed = self.turn_away(closed, now, orders);
        let idle = mem::take(&mut self.shelf);
        for slot in unclaimed.into_iter().chain(idle) {
            self.retire(slot, CloseReason::PoolClosed, now);
        }
        // Opens that have not begun are not begun.
        for work in mem::take(&mut self.owed) {
            match work.job {
                Job::Open => self.vacate(work.slot, now, orders),
                Job::Vet { .. } | Job::Clean { .. } | Job::Close { .. } => {
                    self.owed.push_back(work)
                }
            }
        }
        self.tell_watchers(orders);
        self.end(orders, now);
        true
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The leased slots of a closed pool; of an open one, none.
    pub(crate) fn leased_after_close(&self) -> Vec<SlotNo> {
        let is_out = |slot: &SlotNo| self.closed && self.slots[*slot].state == State::Leased;
        (0..self.slots.len()).filter(is_out).collect()
    }

    /// Returns whether no resource is out and no work is left.
    pub(crate) fn is_drained(&self) -> bool {
        self.occupied() == 0
    }

    /// Of a closed pool, where nothing is idle: how many slots are neither free nor leased.
    pub(crate) fn unfinished(&self) -> usize {
        self.occupied() - self.count(State::Leased)
    }

    /// Refuses every waiter, also one that has not claimed its grant yet. Returns the slots that
    /// were granted to those.
    fn turn_away(
        &mut self,
        error: impl Fn(&Self) -> AcquireError<R::Error>,
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
            let mail = Mail::error(error(self));
            let reason = mail.refusal();
            match mailbox.revoke(mail) {
                Ok(resource) => {
                    self.count_refusal(reason);
                    unclaimed.push(self.take_back(resource, now));
                }
                Err(mail) => orders.drop_later(Some(Many::Unread(mail))),
            }
        }
        self.revoke_places(|_| true, |ledger| Mail::error(error(ledger)), orders);
        while let Some(waiter) = self.waiters.take_first() {
            let mail = Mail::error(error(self));
            self.count_refusal(mail.refusal());
            self.wait_time += now.nanoseconds_since(waiter.since);
            waiter.mailbox.deliver(mail);
            orders.wake_waiter(waiter.waker);
        }
        self.unserved_since = None;
        unclaimed
    }

    pub(crate) fn breaker(&self) -> &Breaker<R::Error> {
        &self.breaker
    }

    /// Changes the state of the breaker, unless it is no longer `from`. Returns the state before.
    /// Every waiter is told of `Inactive` at once, also one that has not claimed its grant yet.
    pub(crate) fn set_breaker(
        &mut self,
        from: Option<BreakerState>,
        next: BreakerState,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> BreakerState {
        let before = self.breaker.state;
        if before == next || from.is_some_and(|from| from != before) {
            self.end(orders, now);
            return before;
        }
        let cause = self.last_failure();
        orders.drop_later(self.breaker.cause.take().map(Many::Error));
        self.breaker = Breaker {
            state: next,
            since: now,
            ask_at: None,
            proving: next == BreakerState::Recovering && self.limits.self_probe,
            cause,
        };
        self.slots.iter_mut().for_each(|slot| slot.probe = false);
        if next == BreakerState::Inactive {
            self.breaker.ask_at = Some(now);
            self.due(now, orders);
            let unclaimed = self.turn_away(|ledger| ledger.unavailable(now), now, orders);
            for slot in unclaimed {
                self.place(slot, now, orders);
            }
        }
        self.changed(now, orders);
        before
    }

    /// There is another strategy, or none. If the breaker is inactive, it is asked at once.
    pub(crate) fn strategy_changed(&mut self, now: Moment, orders: &mut Orders<R>) {
        if self.breaker.state == BreakerState::Inactive {
            self.breaker.ask_at = Some(now);
            self.due(now, orders);
        }
        self.end(orders, now);
    }

    /// The strategy wants to be asked again after this long; `None`: never, because there is none.
    pub(crate) fn ask_again(&mut self, after: Option<Duration>, now: Moment) {
        if self.breaker.state == BreakerState::Inactive {
            self.breaker.ask_at = after.and_then(|after| now.checked_add(after));
        }
    }

    /// Returns for how long the breaker has been inactive, if it is time to ask the strategy
    /// whether to recover.
    pub(crate) fn asks_recovery(&self, now: Moment) -> Option<Duration> {
        let due = self.breaker.ask_at.is_some_and(|at| at <= now);
        due.then(|| now.saturating_duration_since(self.breaker.since))
    }
}
