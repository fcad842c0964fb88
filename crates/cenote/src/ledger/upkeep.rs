//! Upkeep's part of the ledger: what is due, and when the next thing will be.

use std::task::Poll;
use std::time::Duration;

use super::slot::{SlotNo, State};
use super::{HELD_UP_AFTER, Ledger, Orders, Resource};
use crate::breaker::BreakerState;
use crate::moment::Moment;
use crate::status::{Holder, Reason};

/// A replacement is opened this long before a resource expires, at most: an open seldom takes longer.
const REPLACE_AHEAD: Duration = Duration::from_secs(5);

/// How many idle resources the heartbeat checks at once: few, for what is checked cannot be lent.
const HEARTBEATS_AT_ONCE: usize = 2;

/// Upkeep never spins, whatever is due.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

/// The upkeep task of a busy runtime may be late, but not by so much.
const OVERDUE_AFTER: Duration = Duration::from_secs(1);

/// Why a warm-up ended early.
#[derive(Debug)]
pub(crate) enum Cold<F> {
    Closed,
    Failed(F),
}

/// What a round of upkeep came to.
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

/// What came of a warm-up.
type Warmed<R> = Result<(), Cold<<R as Resource>::Failure>>;

impl<R: Resource> Ledger<R> {
    /// Does what is due.
    pub(crate) fn upkeep(&mut self, now: Moment) -> (Upkeep, Orders<R>) {
        let mut orders = Orders::default();
        let mut leaked = Vec::new();
        self.stand_in_for_alarm(now, &mut orders);
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
        self.serve(now, &mut orders);
        self.wakes_at = self.next_due(now).map(|at| at.max(now + SHORTEST_SLEEP));
        // The upkeep task is awake.
        orders.ring = false;
        (
            Upkeep {
                leaked,
                next: self.wakes_at,
            },
            self.finish(orders, now),
        )
    }

    /// Returns whether something is due that must not be done while a waiter is queued.
    fn puts_off(&self, now: Moment) -> bool {
        let is_due = |at: Option<Moment>| at.is_some_and(|at| at <= now);
        let interval = self.limits.heartbeat_interval;
        let beat = |slot: &SlotNo| interval.map(|after| self.slots[*slot].proven_at() + after);
        self.shortage() > 0
            || self.shelf.iter().any(|slot| is_due(beat(slot)))
            || (0..self.slots.len()).any(|slot| is_due(self.replace_at(slot)))
    }

    /// Returns whether the upkeep task should have run by now, and did not: its runtime may not be driven any more. The caller takes over.
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

    pub(crate) fn unpause(&mut self, now: Moment) -> Orders<R> {
        let mut orders = Orders::default();
        self.paused = false;
        self.due(now, &mut orders);
        self.finish(orders, now)
    }

    /// One look at a warm-up that began when `failed` opens had failed: done, failed, or more is opened.
    pub(crate) fn warm(&mut self, failed: u64, now: Moment) -> (Poll<Warmed<R>>, Orders<R>) {
        let ready = self.total() - self.count(State::Opening);
        let least = self.limits.min_size.max(self.limits.min_idle).max(1);
        let missing = least.saturating_sub(ready);
        let failure = self
            .last_failure
            .as_deref()
            .filter(|_| self.counts.open_failed > failed)
            .cloned();
        let answer = match failure {
            _ if self.closed => Poll::Ready(Err(Cold::Closed)),
            Some(failure) => Poll::Ready(Err(Cold::Failed(failure))),
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
        (answer, self.finish(Orders::default(), now))
    }

    /// How many resources `min_size` and `min_idle` ask for beyond those that are here or on their
    /// way. While opening fails or hangs and nothing is left, one: the pool finds out by itself when
    /// the backend is back.
    pub(super) fn shortage(&self) -> usize {
        if self.closed || self.paused || !self.lends_freely() {
            return 0;
        }
        let total = self.total();
        let least = self.limits.min_size.max(usize::from(self.is_down()));
        let spare = self.shelf.len() + self.count(State::Opening) + self.count(State::Checking);
        let wanted = least
            .saturating_sub(total)
            .max(self.limits.min_idle.saturating_sub(spare));
        wanted.min(self.max_size.saturating_sub(self.occupied()))
    }

    /// Rings the upkeep task if what is due next comes before it wakes.
    pub(super) fn due_next(&mut self, now: Moment, orders: &mut Orders<R>) {
        if let Some(at) = self.next_due(now) {
            self.due(at, orders);
        }
    }

    fn leaked(&mut self, now: Moment) -> Vec<Holder> {
        let Some(after) = self.limits.leak_after else {
            return Vec::new();
        };
        let mut leaked = Vec::new();
        for slot in 0..self.slots.len() {
            let entry = &mut self.slots[slot];
            let out = entry.state == State::Leased && !entry.overdue;
            if out && now.saturating_duration_since(entry.since) >= after {
                entry.overdue = true;
                self.counts.leaked += 1;
                leaked.extend(self.holder(slot, now));
            }
        }
        leaked
    }

    /// Closes what is worn out, and what was unused for too long and is not needed for `min_size` and `min_idle`.
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
            self.retire(slot, Reason::Idle, now);
        }
    }

    /// Is more there than `min_size` and `min_idle` ask for?
    pub(super) fn is_evictable(&self) -> bool {
        self.shelf.len() > self.limits.min_idle && self.total() > self.limits.min_size
    }

    /// Make before break: where there is room, the successor of a resource that expires soon is opened first. Only if it will be needed:
    /// without it the pool would fall below `min_size` or `min_idle`, or callers use it and no other is idle.
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

    /// When the successor of this resource is due, unless that was decided already.
    pub(super) fn replace_at(&self, slot: SlotNo) -> Option<Moment> {
        let entry = &self.slots[slot];
        let lives =
            matches!(entry.state, State::Idle | State::Leased | State::OnTray) && !entry.replaced;
        let expires_at = entry.expires_at.filter(|_| lives)?;
        let lifetime = expires_at.saturating_duration_since(entry.opened_at);
        Some(expires_at - REPLACE_AHEAD.min(lifetime / 10))
    }

    fn is_needed(&self, slot: SlotNo, leaving: &Leaving, now: Moment) -> bool {
        let entry = &self.slots[slot];
        let is_idle = entry.state == State::Idle;
        let opening = self.count(State::Opening);
        let staying_idle = self.shelf.len() - leaving.idle;
        // The end of a lease makes no spare one less.
        let spare_ends = is_idle && self.limits.min_idle > 0;
        let is_short = self.total() - leaving.all <= self.limits.min_size
            || spare_ends && staying_idle + opening <= self.limits.min_idle;
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

    fn may_refill(&self, now: Moment) -> bool {
        let backed_off = self
            .failing
            .as_ref()
            .is_some_and(|failing| now < failing.refill_at);
        self.lends_freely() && !backed_off && self.has_room(now)
    }

    fn lends_freely(&self) -> bool {
        !self.suspended && self.breaker.state == BreakerState::Active
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
            self.examine(slot, true, false, now);
        }
    }

    fn next_due(&self, now: Moment) -> Option<Moment> {
        if self.closed {
            return None;
        }
        let mut next = now + self.limits.upkeep_interval;
        let mut sooner = |at: Option<Moment>| next = next.min(at.unwrap_or(next));
        sooner(self.stand_in_at());
        sooner(self.breaker.ask_at);
        sooner(self.refused_until(now).filter(|_| !self.waiters.is_empty()));
        if self.paused {
            return Some(next);
        }
        // While a waiter is queued, upkeep puts off what is due; the last waiter wakes it.
        let calm = self.waiters.is_empty();
        let counts = |at: &Moment| calm || *at > now;
        let may_open = self.has_room(now) && self.lends_freely();
        let open_at = self
            .failing
            .as_ref()
            .map_or(now, |failing| failing.refill_at);
        if self.shortage() > 0 {
            sooner(Some(open_at).filter(|at| may_open && counts(at)));
            sooner(
                self.working(now)
                    .next()
                    .map(|slot| self.slots[slot].since + HELD_UP_AFTER),
            );
        }
        let evictable = self.is_evictable();
        let beats = self.count(State::Checking) < HEARTBEATS_AT_ONCE;
        let beat = self.limits.heartbeat_interval.filter(|_| beats);
        for (number, slot) in self.slots.iter().enumerate() {
            match slot.state {
                State::Idle => {
                    sooner(slot.retire_at);
                    sooner(slot.expires_at);
                    sooner(
                        self.limits
                            .idle_timeout
                            .filter(|_| evictable)
                            .map(|timeout| slot.used_at + timeout),
                    );
                    let beat = beat.map(|interval| slot.proven_at() + interval);
                    sooner(beat.filter(counts));
                }
                State::Leased if !slot.overdue => {
                    sooner(self.limits.leak_after.map(|after| slot.since + after));
                }
                State::Vacant
                | State::Opening
                | State::Leased
                | State::OnTray
                | State::Checking
                | State::Cleaning
                | State::Closing => {}
            }
            if may_open {
                let at = self.replace_at(number).map(|at| at.max(open_at));
                sooner(at.filter(counts));
            }
        }
        Some(next)
    }
}
