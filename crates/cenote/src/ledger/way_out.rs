//! The way out: returns, and the results of the owed work.

use std::mem;
use std::time::Duration;

use super::slot::{SlotNo, State};
use super::{Failing, HELD_UP_AFTER, Ledger, Orders, Refusal, Resource, Work};
use crate::backoff::Backoff;
use crate::config::OnOpenError;
use crate::moment::Moment;
use crate::rt::Home;
use crate::status::Reason;

/// What a returned resource looks like, judged before the ledger is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Good,
    /// Something asynchronous must be done before the next user gets it: cleaning, or only a check or a hook.
    Dirty {
        clean: bool,
    },
    Broken,
    /// Found broken when it was about to be lent: its holder never had it.
    Dead,
    Discarded,
}

/// By whom the work is done that a return makes necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// By the pool, later.
    Dropped,
    /// By the caller that returns the lease, now.
    Polite,
}

/// A lease that came back.
#[derive(Debug)]
pub(crate) struct Returned<R> {
    /// When it was granted.
    pub(crate) since: Moment,
    /// It had been reported as leaked.
    pub(crate) late: bool,
    /// It was lent while the breaker recovered.
    pub(crate) probe: bool,
    /// It was closed because it is broken, and for no other reason.
    pub(crate) refused: bool,
    /// The work that the caller has to do, if that was the manner.
    pub(crate) work: Option<Work<R>>,
}

/// What came of a check or a clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It may be lent as it is.
    Fit,
    /// It lives, but the hook was not asked.
    Alive,
    Unfit(Reason),
}

/// What a failed open has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    /// Nothing: its slot is free.
    GiveUp,
    /// Try again after this long: somebody still waits.
    Retry(Duration),
}

/// The first delay between two tries of an open, and the longest: quick enough for a server that restarts, slow enough for one that is
/// down for the night.
const RETRY: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
const REFILL: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));

impl<R: Resource> Ledger<R> {
    /// A lease comes home.
    pub(crate) fn give_back(
        &mut self,
        slot: SlotNo,
        resource: R,
        condition: Condition,
        manner: Manner,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Returned<R> {
        let entry = &mut self.slots[slot];
        let since = entry.since;
        let late = entry.overdue;
        entry.asker = None;
        if entry.label.is_some() {
            entry.label = None;
        }
        let probe = mem::take(&mut entry.probe);
        // A resource that was found dead is no sign of life.
        if condition != Condition::Dead {
            entry.used_at = now;
        }

        let worn = self.worn(slot, now);
        let unfit = match condition {
            _ if self.closed => Some(Reason::PoolClosed),
            _ if worn == Some(Reason::Invalidated) => worn,
            Condition::Discarded => Some(Reason::Discarded),
            Condition::Broken | Condition::Dead => Some(Reason::Broken),
            Condition::Good | Condition::Dirty { .. } => worn,
        };
        match condition {
            Condition::Discarded => self.counts.discarded += 1,
            Condition::Dead => {
                self.lent -= 1;
                self.slots[slot].uses -= 1;
            }
            Condition::Good | Condition::Dirty { .. } | Condition::Broken => {}
        }
        let mut work = match (unfit, condition) {
            (Some(reason), _) => Some(self.closing(slot, resource, reason, now)),
            (None, Condition::Dirty { clean }) => {
                self.become_state(slot, State::Cleaning, now);
                Some(Work::Clean {
                    slot,
                    id: self.slots[slot].id,
                    resource,
                    clean,
                    probe,
                })
            }
            (None, _) => {
                self.slots[slot].resource = Some(resource);
                self.pass_on(slot, now, orders);
                None
            }
        };
        if work.is_some() {
            if matches!(condition, Condition::Broken | Condition::Dead) {
                self.found_dead(now);
            }
            // It may have been a probe: the next one can go.
            self.serve(now, orders);
        }
        if manner == Manner::Dropped {
            if let Some(work) = work.take() {
                self.owed.push_back(work);
            }
        }
        self.end(orders, now);
        Returned {
            since,
            late,
            probe,
            refused: unfit == Some(Reason::Broken),
            work,
        }
    }

    /// A lease leaves the pool together with its resource.
    pub(crate) fn detach(&mut self, slot: SlotNo, now: Moment) -> Orders<R> {
        let mut orders = Orders::default();
        self.slots[slot].probe = false;
        self.slots[slot].asker = None;
        self.slots[slot].label = None;
        self.counts.detached += 1;
        self.slots[slot].used_at = now;
        self.vacate(slot, now, &mut orders);
        self.finish(orders, now)
    }

    /// Is the open of this slot still wanted? If not, the slot is free: nothing is opened once the work has stopped.
    pub(crate) fn may_open(&mut self, slot: SlotNo, now: Moment) -> (bool, Orders<R>) {
        let mut orders = Orders::default();
        let wanted = !self.closed && (self.slots[slot].refill || !self.waiters.is_empty());
        if !wanted {
            self.vacate(slot, now, &mut orders);
        }
        (wanted, self.finish(orders, now))
    }

    /// An open succeeded. Returns the number of the resource.
    pub(crate) fn opened(
        &mut self,
        slot: SlotNo,
        mut resource: R,
        home: Option<Home>,
        now: Moment,
    ) -> (u64, Orders<R>) {
        let mut orders = Orders::default();
        self.counts.opened += 1;
        self.failing = None;
        let expires_at = self.limits.max_lifetime.map(|lifetime| {
            let part = self.limits.lifetime_jitter * self.rng.f64();
            now + (lifetime - lifetime.mul_f64(part))
        });
        self.open_took(now.saturating_duration_since(self.slots[slot].since));
        let entry = &mut self.slots[slot];
        let id = self.counts.opened;
        resource.opened(slot, id);
        entry.resource = Some(resource);
        entry.id = id;
        entry.opened_at = now;
        entry.used_at = now;
        entry.checked_at = now;
        entry.expires_at = expires_at;
        entry.uses = 0;
        entry.replaced = false;
        entry.home = home;
        self.place(slot, now, &mut orders);
        // A waiter that timed out just now was served too late, and not because opens hang.
        self.open_overdue = None;
        self.tell_watchers(&mut orders);
        self.due_of(slot, now, &mut orders);
        (id, self.finish(orders, now))
    }

    /// An open failed: the oldest waiter hears of it, or it is tried again.
    pub(crate) fn open_failed(
        &mut self,
        slot: SlotNo,
        failure: R::Failure,
        now: Moment,
    ) -> (AfterFailure, Orders<R>) {
        let mut orders = Orders::default();
        self.counts.open_failed += 1;
        self.found_dead(now);
        // As many others run as may, because this one was held up: they try again, and this one does not.
        let is_replaced = now.saturating_duration_since(self.slots[slot].since) >= HELD_UP_AFTER
            && self.opening(now) >= self.limits.max_opening;
        let before = self.last_failure.replace(Box::new(failure.clone()));
        self.waste.extend(before.map(|failure| *failure));
        let failing = self.failing.get_or_insert_with(|| {
            Box::new(Failing {
                since: now,
                retry: RETRY,
                retry_at: now,
                line: RETRY,
                refill: REFILL,
                refill_at: now,
                line_at: now,
            })
        });
        // Those of one round count once.
        if failing.refill_at <= now {
            failing.refill_at = now + failing.refill.next(&mut self.rng);
        }
        failing.line_at = now + failing.line.next(&mut self.rng).min(HELD_UP_AFTER);
        let after = if self.closed
            || is_replaced
            || self.waiters.is_empty()
            || self.limits.on_open_error == OnOpenError::Fail
        {
            if self.limits.on_open_error == OnOpenError::Fail {
                if let Some(waiter) = self.waiters.take_first() {
                    self.wait_time += now.nanoseconds_since(waiter.since);
                    waiter.mailbox.deliver(Err(Refusal::Open(failure)));
                    orders.wake_waiter(waiter.waker);
                    self.gave_up_at = now;
                    self.line_is_shorter(now, &mut orders);
                }
            }
            self.vacate(slot, now, &mut orders);
            AfterFailure::GiveUp
        } else {
            // Those of one round count once, here too.
            let delay = if failing.retry_at <= now {
                let delay = failing.retry.next(&mut self.rng);
                failing.retry_at = now + delay;
                delay
            } else {
                // Nobody comes back before the round is over.
                let left = failing.retry_at.saturating_duration_since(now);
                failing.retry.again(&mut self.rng).max(left)
            };
            // A retry is not a hung open: it counts as on its way.
            self.slots[slot].since = now + delay;
            AfterFailure::Retry(delay)
        };
        self.tell_watchers(&mut orders);
        self.due_next(now, &mut orders);
        (after, self.finish(orders, now))
    }

    /// A check or a clean has ended.
    pub(crate) fn judged(
        &mut self,
        slot: SlotNo,
        resource: R,
        outcome: Outcome,
        now: Moment,
    ) -> Orders<R> {
        let mut orders = Orders::default();
        let entry = &mut self.slots[slot];
        entry.resource = Some(resource);
        match outcome {
            Outcome::Fit | Outcome::Alive => {
                entry.checked_at = now;
                if outcome == Outcome::Alive && self.asks {
                    self.restore(slot, now, &mut orders);
                } else {
                    self.place(slot, now, &mut orders);
                }
                self.due_of(slot, now, &mut orders);
            }
            Outcome::Unfit(reason) => {
                self.retire(slot, reason, now);
                if matches!(reason, Reason::FailedCheck | Reason::Broken) {
                    self.found_dead(now);
                }
                self.serve(now, &mut orders);
            }
        }
        self.finish(orders, now)
    }

    /// A resource was put back unchanged: it was looked at, and nothing was proven.
    pub(crate) fn put_back(&mut self, slot: SlotNo, resource: R, now: Moment) -> Orders<R> {
        let mut orders = Orders::default();
        self.slots[slot].resource = Some(resource);
        self.restore(slot, now, &mut orders);
        self.finish(orders, now)
    }

    /// A close has ended.
    pub(crate) fn closed(&mut self, slot: SlotNo, now: Moment) -> Orders<R> {
        let mut orders = Orders::default();
        self.vacate(slot, now, &mut orders);
        self.finish(orders, now)
    }

    /// The task that did the work for this slot is gone, and the resource with it: its runtime has shut down.
    pub(crate) fn lost(&mut self, slot: SlotNo, now: Moment) -> Orders<R> {
        let mut orders = Orders::default();
        match self.slots[slot].state {
            State::Checking => self.counts.closed.add(Reason::FailedCheck),
            State::Cleaning => self.counts.closed.add(Reason::FailedClean),
            State::Vacant
            | State::Opening
            | State::Idle
            | State::Leased
            | State::OnTray
            | State::Closing => {}
        }
        self.vacate(slot, now, &mut orders);
        self.finish(orders, now)
    }

    /// Finds the place of a resource that can be used: the first in line, or the shelf.
    pub(super) fn place(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        match self.unfit(slot, now) {
            Some(reason) => {
                self.retire(slot, reason, now);
                self.serve(now, orders);
            }
            None => self.pass_on(slot, now, orders),
        }
    }

    /// The same for one that is fit.
    #[inline]
    fn pass_on(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        if self.may_grant(now, orders) {
            self.grant(slot, now, orders);
        } else {
            self.shelve(slot, now, orders);
        }
        // Its state has changed, so another may be opened, or lent as a probe.
        self.serve(now, orders);
    }

    /// Puts a resource back on the shelf, from where it is vetted before it is lent.
    fn restore(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        match self.unfit(slot, now) {
            Some(reason) => self.retire(slot, reason, now),
            None => self.shelve(slot, now, orders),
        }
        self.serve(now, orders);
    }

    /// Must it be closed, also if it is alive?
    fn unfit(&self, slot: SlotNo, now: Moment) -> Option<Reason> {
        if self.closed {
            return Some(Reason::PoolClosed);
        }
        self.worn(slot, now)
    }

    /// Rings the upkeep task if something about this slot is due before it wakes.
    fn due_of(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        if let Some(at) = self.replace_at(slot) {
            self.due(at, orders);
        }
        let beats = self.limits.heartbeat_interval.is_some();
        if beats || self.shortage() > 0 {
            self.due_next(now, orders);
        }
    }
}
