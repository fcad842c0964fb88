//! Entry: the upkeep task runs. Eviction, lifetime, heartbeat, refill and leak reports; also
//! warm-up.

use std::task::Poll;
use std::time::Duration;

use super::due::{HEARTBEATS_AT_ONCE, REPLACE_AHEAD};
use super::slot::{SlotNo, State};
use super::{Ledger, Orders, Resource};
use crate::error::WarmError;
use crate::status::{CloseReason, Holder};
use crate::time::Moment;

/// Upkeep never spins, whatever is due.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

/// Longer than the upkeep task of a busy runtime is ever late.
const OVERDUE_AFTER: Duration = Duration::from_secs(1);

/// The result of a round of upkeep.
#[derive(Debug)]
pub(crate) struct Upkeep {
    /// The leases that are out for too long, each reported once.
    pub(crate) leaked: Vec<Holder>,
    /// When the next round is due; `None`: not before the task is woken.
    pub(crate) next: Option<Moment>,
}

/// Resources that expire soon, and whose successors were decided about. They are not counted on.
#[derive(Debug, Default)]
struct Leaving {
    all: usize,
    idle: usize,
}

impl Leaving {
    /// A slot that is free, being opened or being closed holds nothing that could expire.
    fn add(&mut self, state: State) {
        let lives = !matches!(state, State::Vacant | State::Opening | State::Closing);
        self.all += usize::from(lives);
        self.idle += usize::from(state == State::Idle);
    }
}

impl<R: Resource> Ledger<R> {
    /// Does the jobs that are due.
    pub(crate) fn upkeep(&mut self, now: Moment, orders: &mut Orders<R>) -> Upkeep {
        let mut leaked = Vec::new();
        if !self.closed && !self.paused {
            leaked = self.leaked(now);
            self.evict(now);
            let calm = self.waiters.is_empty();
            self.stepped_back = !calm && self.puts_off(now);
            if calm {
                self.replace(now);
                self.refill(now);
                self.heartbeat(now);
            }
        }
        self.serve(now, orders);
        self.wakes_at = self.next_due(now).map(|at| at.max(now + SHORTEST_SLEEP));
        // The upkeep task is awake.
        orders.rest().ring = false;
        self.end(orders, now);
        let next = self.wakes_at;
        Upkeep { leaked, next }
    }

    /// Returns whether a job is due that must not be done while a waiter is queued.
    fn puts_off(&self, now: Moment) -> bool {
        let is_due = |at: Option<Moment>| at.is_some_and(|at| at <= now);
        let interval = self.limits.heartbeat_interval;
        let beat = |slot: &SlotNo| interval.map(|after| self.slots[*slot].proven_at() + after);
        self.shortage() > 0
            || self.shelf.iter().any(|slot| is_due(beat(slot)))
            || (0..self.slots.len()).any(|slot| is_due(self.replace_at(slot)))
    }

    /// Returns whether the upkeep task should have run by now, and did not: its runtime may not be
    /// driven any more. The caller takes over.
    pub(crate) fn is_upkeep_overdue(&mut self, now: Moment) -> bool {
        let overdue = self.wakes_at.is_some_and(|at| at + OVERDUE_AFTER < now) && !self.closed;
        if overdue {
            self.wakes_at = Some(now);
        }
        overdue
    }

    pub(crate) fn pause(&mut self) {
        self.paused = true;
    }

    pub(crate) fn unpause(&mut self, now: Moment, orders: &mut Orders<R>) {
        self.paused = false;
        self.due(now, orders);
        self.end(orders, now);
    }

    /// One look at a warm-up that began when `failed` opens had failed: done, failed, or more is
    /// opened.
    pub(crate) fn warm(
        &mut self,
        failed: u64,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Poll<Result<(), WarmError<R::Error>>> {
        let least = self.limits.min_size.max(self.limits.min_idle).max(1);
        let missing = least.saturating_sub(self.alive());
        let failure = self.last_failure.as_deref();
        let failure = failure.filter(|_| self.counts.open_failed > failed);
        let answer = match failure {
            _ if self.closed => Poll::Ready(Err(WarmError::Closed)),
            Some(failure) => Poll::Ready(Err(WarmError::Open(failure.clone()))),
            None if missing == 0 => Poll::Ready(Ok(())),
            None => {
                for _ in self.count(State::Opening)..missing {
                    if self.has_room(now) {
                        self.reserve(true, now);
                    }
                }
                Poll::Pending
            }
        };
        self.end(orders, now);
        answer
    }

    fn leaked(&mut self, now: Moment) -> Vec<Holder> {
        let Some(after) = self.limits.leak_after else {
            return Vec::new();
        };
        let mut leaked = Vec::new();
        for slot in 0..self.slots.len() {
            let entry = &mut self.slots[slot];
            let out = entry.state == State::Leased && !entry.overdue && !entry.kept;
            if out && now.saturating_duration_since(entry.since) >= after {
                entry.overdue = true;
                self.counts.leaked += 1;
                leaked.extend(self.holder(slot, now));
            }
        }
        leaked
    }

    /// Closes resources that are worn out, and those that were unused for too long and are not
    /// needed for `min_size` and `min_idle`.
    fn evict(&mut self, now: Moment) {
        let worn: Vec<_> = self
            .shelf
            .iter()
            .filter_map(|slot| self.worn(*slot, now).map(|reason| (*slot, reason)))
            .collect();
        for (slot, reason) in worn {
            self.unshelve(slot);
            self.retire(slot, reason, now);
        }
        let Some(timeout) = self.limits.idle_timeout else {
            return;
        };
        while let Some(slot) = self.shelf.front().copied() {
            let unused = now.saturating_duration_since(self.slots[slot].used_at);
            if unused < timeout || !self.is_evictable() {
                break;
            }
            self.unshelve(slot);
            self.retire(slot, CloseReason::Idle, now);
        }
    }

    /// Make before break: where there is room, the successor of a resource that expires soon is
    /// opened first. Only if it will be needed: without it the pool would fall below `min_size` or
    /// `min_idle`, or callers use it and no other is idle.
    fn replace(&mut self, now: Moment) {
        let is_due = |slot: &SlotNo| self.replace_at(*slot).is_some_and(|at| at <= now);
        let due: Vec<_> = (0..self.slots.len()).filter(is_due).collect();
        if due.is_empty() {
            return;
        }
        let mut leaving = Leaving::default();
        for slot in self.slots.iter().filter(|slot| slot.replaced) {
            leaving.add(slot.state);
        }
        for slot in due {
            let is_needed = self.is_needed(slot, &leaving, now);
            if is_needed && !self.may_refill(now) {
                continue;
            }
            if is_needed {
                self.reserve(true, now);
            }
            self.slots[slot].replaced = true;
            leaving.add(self.slots[slot].state);
        }
    }

    fn is_needed(&self, slot: SlotNo, leaving: &Leaving, now: Moment) -> bool {
        let entry = &self.slots[slot];
        let is_idle = entry.state == State::Idle;
        let opening = self.count(State::Opening);
        let staying_idle = self.shelf.len() - leaving.idle;
        // The end of a leased resource leaves as many spare ones as before.
        let is_short = self.total() - leaving.all <= self.limits.min_size
            || is_idle && staying_idle + opening <= self.limits.min_idle;
        let used_at = if is_idle { entry.used_at } else { entry.since };
        let is_used = entry.uses > 1 && now.saturating_duration_since(used_at) < REPLACE_AHEAD;
        let has_other = staying_idle > usize::from(is_idle) || opening > 0;
        is_short || is_used && !has_other
    }

    fn refill(&mut self, now: Moment) {
        for _ in 0..self.shortage() {
            if self.may_refill(now) {
                self.reserve(true, now);
            }
        }
    }

    fn heartbeat(&mut self, now: Moment) {
        let Some(interval) = self.limits.heartbeat_interval else {
            return;
        };
        let free = HEARTBEATS_AT_ONCE.saturating_sub(self.count(State::Checking));
        let quiet: Vec<_> = self
            .shelf
            .iter()
            .copied()
            .filter(|slot| now.saturating_duration_since(self.slots[*slot].proven_at()) >= interval)
            .take(free)
            .collect();
        for slot in quiet {
            self.unshelve(slot);
            self.examine(slot, true, false, now);
        }
    }
}
