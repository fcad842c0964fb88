//! Entry: work begins and ends. Opens, checks, cleans and closes report here.

use std::collections::VecDeque;
use std::time::Duration;

use super::slot::{SlotNo, State};
use super::{HELD_UP_AFTER, Ledger, Mail, Many, Orders, Resource, Work};
use crate::config::OnOpenError;
use crate::error::{AcquireError, OpenError};
use crate::rt::sync::Ordering;
use crate::status::CloseReason;
use crate::time::Moment;

/// The longest pause between two tries at a backend that is full. A place there may become free at
/// any time, and a try costs the backend little.
const PLACE_RETRY: Duration = Duration::from_millis(500);

/// The result of a check or a clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It may be lent as it is.
    Fit,
    /// It lives, but the hook was not asked.
    Alive,
    Unfit(CloseReason),
}

/// What a failed open has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    /// Nothing: its slot is free.
    GiveUp,
    /// Try again after this long, because a waiter is still queued.
    Retry(Duration),
}

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

    /// Wakes the callers that may do the owed work: the first waiters, and the futures that wait
    /// for resources to come or go. There are several, because any of them may be on a runtime
    /// that is not driven.
    pub(crate) fn call_helpers(&mut self, orders: &mut Orders<R>) {
        self.wake_first(orders);
        self.tell_watchers(orders);
    }

    /// Returns whether the open of this slot is still wanted. If not, the slot is free.
    pub(crate) fn may_open(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) -> bool {
        // A pool that is suspended opens nothing for its waiters, and does not go on with an open
        // that has failed. A proof that the backend is back would begin again at once, and so would
        // a warm-up.
        let serves = !self.suspended || self.breaker.proving;
        let is_for_waiters = serves && !self.waiters.is_empty();
        let wanted = !self.closed && (self.slots[slot].refill || is_for_waiters);
        if !wanted {
            self.vacate(slot, now, orders);
        }
        self.end(orders, now);
        wanted
    }

    /// An open succeeded. Returns the number of the resource.
    pub(crate) fn opened(
        &mut self,
        slot: SlotNo,
        mut resource: R,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> u64 {
        self.counts.opened += 1;
        self.failing = None;
        let expires_at = self.limits.max_lifetime.map(|lifetime| {
            let part = self.limits.lifetime_jitter * self.rng.f64();
            now + (lifetime - lifetime.mul_f64(part))
        });
        self.open_took(now.saturating_duration_since(self.slots[slot].since));
        let id = match &self.numbers {
            Some(last) => last.fetch_add(1, Ordering::Relaxed) + 1,
            None => self.counts.opened,
        };
        resource.opened(slot, id);
        let entry = &mut self.slots[slot];
        entry.resource = Some(resource);
        entry.id = id;
        entry.opened_at = now;
        entry.used_at = now;
        entry.checked_at = now;
        entry.expires_at = expires_at;
        entry.uses = 0;
        entry.replaced = false;
        if self.breaker.proving && !self.closed {
            self.examine(slot, true, false, now);
        } else {
            self.place(slot, now, orders);
        }
        // A waiter that timed out just now was served too late, and not because opens hang.
        self.open_overdue = None;
        self.tell_watchers(orders);
        self.due_of(slot, now, orders);
        self.end(orders, now);
        id
    }

    /// An open failed: the first waiter gets the error, or the open is tried again.
    pub(crate) fn open_failed(
        &mut self,
        slot: SlotNo,
        error: OpenError<R::Error>,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> AfterFailure {
        let fails = self.limits.on_open_error == OnOpenError::Fail;
        self.after_failure(slot, error, fails, now, orders)
    }

    /// The backend has too many connections for another one, and the pool waits for a place there:
    /// the open is tried again for as long as a caller waits.
    pub(crate) fn overloaded(
        &mut self,
        slot: SlotNo,
        error: OpenError<R::Error>,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> AfterFailure {
        let after = self.after_failure(slot, error, false, now, orders);
        match after {
            AfterFailure::Retry(delay) => AfterFailure::Retry(delay.min(PLACE_RETRY)),
            AfterFailure::GiveUp => after,
        }
    }

    /// `fails` says whether the first waiter gets the error.
    fn after_failure(
        &mut self,
        slot: SlotNo,
        error: OpenError<R::Error>,
        fails: bool,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> AfterFailure {
        self.counts.open_failed += 1;
        self.found_dead(now);
        // This open was held up, and as many others run as may. They try again, and this one does
        // not.
        let is_replaced = now.saturating_duration_since(self.slots[slot].since) >= HELD_UP_AFTER
            && self.opening(now) >= self.limits.max_opening;
        let before = self.last_failure.replace(Box::new(error.clone()));
        orders.drop_later(before.map(|error| Many::Error(*error)));
        let delay = self.back_off(now);
        let after = if self.closed || is_replaced || fails || self.waiters.is_empty() {
            if fails {
                self.refuse_first(error, now, orders);
            }
            self.vacate(slot, now, orders);
            AfterFailure::GiveUp
        } else {
            // The pause before the next try does not make it a hung open.
            self.slots[slot].since = now + delay;
            AfterFailure::Retry(delay)
        };
        self.tell_watchers(orders);
        self.due_next(now, orders);
        self.end(orders, now);
        after
    }

    /// The manager called an open off, because the resource is not needed. If a caller waits for
    /// it by now, the open is tried again, and no caller is told.
    pub(crate) fn called_off(
        &mut self,
        slot: SlotNo,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> AfterFailure {
        let is_wanted = !self.closed && !self.waiters.is_empty();
        let after = if is_wanted {
            let delay = self.back_off(now);
            self.slots[slot].since = now + delay;
            AfterFailure::Retry(delay)
        } else {
            if self.breaker.proving {
                // The proof would begin again at once.
                self.back_off(now);
            }
            self.vacate(slot, now, orders);
            if self.shortage() > 0 {
                // Upkeep would try again at once.
                self.back_off(now);
            }
            AfterFailure::GiveUp
        };
        self.end(orders, now);
        after
    }

    fn refuse_first(&mut self, error: OpenError<R::Error>, now: Moment, orders: &mut Orders<R>) {
        let Some(waiter) = self.waiters.take_first() else {
            return;
        };
        self.wait_time += now.nanoseconds_since(waiter.since);
        self.gave_up_at = now;
        let pool = self.name.clone();
        let error = Mail::error(AcquireError::Open { pool, error });
        waiter.mailbox.deliver(error);
        orders.wake_waiter(waiter.waker);
        self.queue_is_shorter(now, orders);
    }

    /// A check or a clean has ended. Returns whether it has proven that the backend is back.
    pub(crate) fn judged(
        &mut self,
        slot: SlotNo,
        resource: R,
        outcome: Outcome,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> bool {
        let proving = &mut self.breaker.proving;
        let proves = *proving && outcome == Outcome::Alive;
        *proving &= !proves;
        let entry = &mut self.slots[slot];
        entry.resource = Some(resource);
        match outcome {
            Outcome::Fit | Outcome::Alive => {
                entry.checked_at = now;
                if outcome == Outcome::Alive && self.asks {
                    self.restore(slot, now, orders);
                } else {
                    self.place(slot, now, orders);
                }
                self.due_of(slot, now, orders);
            }
            Outcome::Unfit(reason) => {
                self.retire(slot, reason, now);
                if matches!(reason, CloseReason::FailedCheck | CloseReason::Broken) {
                    self.found_dead(now);
                }
                self.serve(now, orders);
            }
        }
        self.end(orders, now);
        proves
    }

    /// A resource that was looked at is put back unchanged.
    pub(crate) fn put_back(
        &mut self,
        slot: SlotNo,
        resource: R,
        now: Moment,
        orders: &mut Orders<R>,
    ) {
        self.slots[slot].resource = Some(resource);
        self.restore(slot, now, orders);
        self.end(orders, now);
    }

    /// A close has ended.
    pub(crate) fn closed(
        &mut self,
        slot: SlotNo,
        failed: bool,
        now: Moment,
        orders: &mut Orders<R>,
    ) {
        self.counts.close_failed += u64::from(failed);
        self.vacate(slot, now, orders);
        self.end(orders, now);
    }

    /// The task that did the work for this slot was dropped, and the resource with it: its runtime
    /// has shut down.
    pub(crate) fn lost(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        match self.slots[slot].state {
            State::Checking => self.counts.closes.add(CloseReason::FailedCheck),
            State::Cleaning => self.counts.closes.add(CloseReason::FailedClean),
            State::Vacant
            | State::Opening
            | State::Idle
            | State::Leased
            | State::OnTray
            | State::Closing => {}
        }
        self.vacate(slot, now, orders);
        self.end(orders, now);
    }
}
