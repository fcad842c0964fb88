//! The check of the invariants. Compiled for tests, models and the simulation only.

use std::cell::Cell;
use std::task::Waker;

use super::slot::{SlotNo, State};
use super::{Ledger, Resource};
use crate::config::IdleOrder;
use crate::status::Status;
use crate::time::Moment;

/// Beyond so many waiters the ledger is not checked after every entry, so that a long queue is not
/// quadratic.
const LONG: usize = 256;

/// What the checks remember.
#[derive(Debug)]
pub(super) struct Checked {
    /// The latest time that an entry was given.
    latest: Cell<Moment>,
    entries: Cell<usize>,
}

impl Checked {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            latest: Cell::new(now),
            entries: Cell::new(0),
        }
    }
}

impl<R: Resource> Ledger<R> {
    /// Called at the end of every entry.
    pub(super) fn stay_sound(&self, now: Moment) {
        // A thread that read the clock first may get the lock last. Later decisions are judged by
        // their later time.
        let Checked { latest, entries } = &self.checked;
        latest.set(latest.get().max(now));
        entries.set(entries.get() + 1);
        if self.waiters.len() <= LONG || entries.get() % self.waiters.len() == 0 {
            self.assert_sound(latest.get());
        }
    }

    /// The wakers of all waiters that were not woken since their last poll.
    pub(crate) fn queued_wakers(&self) -> Vec<Waker> {
        let wakers = self.waiters.line().map(|waiter| waiter.waker.clone());
        wakers.flatten().collect()
    }

    /// Panics if an invariant does not hold.
    pub(crate) fn assert_sound(&self, now: Moment) {
        let status = self.status(now);
        self.assert_conserved(&status);
        self.assert_busy(now);
        self.assert_in_line(now);
        self.assert_off_trays();
        self.assert_proving();
        if self.closed {
            assert_eq!(
                (status.idle, status.waiting),
                (0, 0),
                "I6: the pool is closed, and a resource is idle or a waiter queued"
            );
            assert!(
                !self.slots.iter().any(|slot| slot.is_unclaimed()),
                "I6: the pool is closed, and a grant is unclaimed"
            );
        }
    }

    /// I1.
    fn assert_conserved(&self, status: &Status) {
        assert_eq!(
            status.total + status.closing + self.vacant.len(),
            self.slots.len(),
            "I1: a slot is in no state"
        );
        let mut states = [0; State::COUNT];
        for slot in &self.slots {
            states[slot.state as usize] += 1;
            assert_eq!(
                slot.resource.is_some(),
                slot.state == State::Idle,
                "I1: a resource in {:?}",
                slot.state
            );
            assert!(
                slot.mailbox.is_none() || slot.state == State::Leased,
                "I1: {:?}, and granted to a waiter",
                slot.state
            );
        }
        assert_eq!(states, self.states, "I1: a count is wrong");
        assert_eq!(self.vacant.len(), self.count(State::Vacant), "I1: vacant");
        assert_eq!(self.shelf.len(), status.idle, "I1: the shelf is wrong");
        let works = |slot: &SlotNo| self.slots[*slot].state.is_work();
        let working = status.opening + status.checking + status.cleaning;
        assert!(self.working.iter().all(works), "I1: at work, and is not");
        assert_eq!(self.working.len(), working, "I1: at work, and not listed");
        let sorted = self.shelf.iter().zip(self.shelf.iter().skip(1));
        for (colder, hotter) in sorted {
            assert!(
                self.slots[*colder].used_at <= self.slots[*hotter].used_at,
                "the shelf is not sorted"
            );
        }
    }

    /// I2.
    fn assert_busy(&self, now: Moment) {
        let wanted = self.waiters.len().min(self.allowance());
        let timely = self.waiters.line().filter(|waiter| waiter.deadline > now);
        if wanted == 0 || timely.count() == 0 {
            return;
        }
        // In FIFO order the waiter may have to wait until the oldest resource is checked.
        let exact = self.limits.idle_order == IdleOrder::Oldest;
        assert!(
            exact || !self.has_fit(now),
            "I2: a fit resource is idle while a waiter is queued"
        );
        // A backend that refuses is left alone for a while: the waiters look again.
        let opening = self.count(State::Opening);
        let may_open = self.occupied() < self.max_size
            && opening < self.limits.max_opening
            && opening < self.opens_at_first()
            && self.failing.is_none();
        let stuck = self.working.len() < wanted && (may_open || !self.shelf.is_empty());
        assert!(
            !stuck,
            "I2: nothing is on its way for a waiter, though there is room"
        );
    }

    /// I3, and that the alarm knows every deadline.
    fn assert_in_line(&self, now: Moment) {
        let ranks: Vec<_> = self.waiters.line().map(|waiter| waiter.rank).collect();
        assert_eq!(ranks.len(), self.waiters.len(), "I3: a waiter is lost");
        assert!(ranks.is_sorted(), "I3: the queue is not in order");
        let deadlines = self.waiters.line().map(|waiter| waiter.deadline);
        let first = deadlines.min().unwrap_or(Moment::NEVER);
        assert_eq!(self.waiters.next_deadline(), first, "a deadline is lost");
        for slot in self.slots.iter().filter(|slot| slot.is_unclaimed()) {
            let known = self.unclaimed_until <= slot.deadline;
            assert!(known, "the deadline of an unclaimed grant is lost");
        }
        let unclaimed = self
            .placed
            .iter()
            .filter(|placed| placed.mailbox.has_place());
        for placed in unclaimed {
            let known = self.unclaimed_until <= placed.deadline;
            assert!(known, "the deadline of an unclaimed place is lost");
        }
        if let Some(next) = self.next_alarm() {
            let is_set = self.alarm_at.is_some_and(|at| at <= next.max(now));
            assert!(is_set, "the alarm is not set for the next deadline");
        }
    }

    /// I9.
    fn assert_proving(&self) {
        if !self.breaker.proving || self.closed {
            return;
        }
        let is_full = self.occupied() >= self.max_size && self.shelf.is_empty();
        // After a failed open upkeep tries again.
        let is_put_off = self.failing.is_some() && self.wakes_at.is_some();
        assert!(
            is_full || is_put_off || !self.working.is_empty(),
            "I9: the backend has to be proven, and nothing is under way"
        );
    }

    /// I8.
    fn assert_off_trays(&self) {
        let on_trays = self.count(State::OnTray);
        let taken = self.trays().filter(|tray| self.is_tray_taken(*tray));
        assert_eq!(on_trays, taken.count(), "I8: a tray is not listed");
        assert!(
            self.waiters.is_empty() || on_trays == 0,
            "I8: a slot is on a tray while a waiter is queued"
        );
    }
}
