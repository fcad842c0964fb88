//! What can be seen of the ledger: counts, holders, health, circles; and the check of its invariants.

use std::time::Duration;

use super::slot::{Asker, Label, Slot, SlotNo, State};
use super::{Ledger, Ticket};
use crate::breaker::BreakerState;
use crate::config::{IdleOrder, Nested};
use crate::error::Phase;
use crate::moment::Moment;
use crate::rt::Owner;
use crate::status::{Health, Holder, Status, Task};

/// What was seen when a waiter ran out of time.
#[derive(Debug)]
pub(crate) struct Report<F> {
    pub(crate) waited: Duration,
    pub(crate) phase: Phase,
    pub(crate) status: Status,
    pub(crate) holders: Vec<Holder>,
    pub(crate) nested: bool,
    pub(crate) last_failure: Option<F>,
}

impl<R, F: Clone> Ledger<R, F> {
    pub(crate) fn status(&self, now: Moment) -> Status {
        let mut status = self.counts.clone();
        for slot in &self.slots {
            match slot.state {
                State::Vacant => {}
                State::Opening => status.opening += 1,
                State::Idle => status.idle += 1,
                State::Leased | State::Aside => status.in_use += 1,
                State::Checking => status.checking += 1,
                State::Cleaning => status.cleaning += 1,
                State::Closing => status.closing += 1,
            }
        }
        status.total =
            status.idle + status.in_use + status.opening + status.cleaning + status.checking;
        status.max_size = self.max_size;
        status.waiting = self.queue.len();
        status.oldest_wait = self
            .queue
            .first()
            .map(|waiter| now.saturating_duration_since(waiter.since));
        status
    }

    /// Every living lease, the longest first.
    pub(crate) fn holders(&self, now: Moment) -> Vec<Holder> {
        let mut holders: Vec<_> = (0..self.slots.len())
            .filter_map(|slot| self.holder(slot, now))
            .collect();
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.held_for));
        holders
    }

    pub(super) fn holder(&self, slot: SlotNo, now: Moment) -> Option<Holder> {
        let slot = &self.slots[slot];
        let asker = slot
            .asker
            .filter(|_| slot.state == State::Leased && !slot.is_unclaimed())?;
        Some(Holder {
            id: slot.id,
            site: asker.site,
            task: asker.owner.map(Task),
            held_for: now.saturating_duration_since(slot.since),
            label: slot.label.as_deref().cloned(),
        })
    }

    pub(crate) fn set_label(&mut self, slot: SlotNo, label: Option<Label>) -> Option<Label> {
        std::mem::replace(&mut self.slots[slot].label, label)
    }

    /// Busy, stuck, or down? Without acquiring anything.
    pub(crate) fn health(&self, now: Moment) -> Health {
        let since = |at: Moment| now.saturating_duration_since(at);
        if self.closed {
            return Health::Closed;
        }
        if self.breaker.state == BreakerState::Inactive {
            return Health::Down {
                down_for: since(self.breaker.since),
            };
        }
        let alive = self.total() - self.count(State::Opening);
        if let Some(failing) = self.failing.as_ref().filter(|_| alive == 0) {
            return Health::Down {
                down_for: since(failing.since),
            };
        }
        let Some(first) = self.queue.first() else {
            let exhausted = self.shelf.is_empty() && self.occupied() >= self.max_size;
            return if exhausted {
                Health::Busy
            } else {
                Health::Healthy
            };
        };
        let silent_for = since(
            self.progressed_at
                .map_or(first.since, |at| at.max(first.since)),
        );
        if silent_for >= self.limits.stuck_after && !self.suspended {
            return Health::Stuck { silent_for };
        }
        Health::Busy
    }

    /// What one who is still in line should be told when its time is over.
    pub(super) fn report(&mut self, ticket: Ticket, now: Moment) -> Report<F> {
        Report {
            waited: now.saturating_duration_since(self.queue.waiter(ticket).since),
            phase: self.phase(ticket),
            status: self.status(now),
            holders: self.holders(now),
            nested: self.is_circle(),
            last_failure: self.last_failure(),
        }
    }

    /// What the waiter with this ticket is waiting for.
    fn phase(&mut self, ticket: Ticket) -> Phase {
        if self.suspended {
            return Phase::Suspended;
        }
        if self.allowance() == 0 {
            return Phase::Recovering;
        }
        let opening = self.count(State::Opening);
        let checking = opening + self.count(State::Checking);
        let cleaning = checking + self.count(State::Cleaning);
        let closing = cleaning + self.count(State::Closing);
        let serial = self.queue.waiter(ticket).serial();
        let ahead = self
            .queue
            .line()
            .take(closing)
            .take_while(|waiter| waiter.serial() < serial)
            .count();
        match ahead {
            ahead if ahead < opening => Phase::Opening,
            ahead if ahead < checking => Phase::Checking,
            ahead if ahead < cleaning => Phase::Cleaning,
            ahead if ahead < closing => Phase::Closing,
            _ => Phase::Queued,
        }
    }

    /// Has no open succeeded since one failed?
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.is_some()
    }

    /// The last error of an open, unless one succeeded since.
    pub(crate) fn last_failure(&self) -> Option<F> {
        self.last_failure.clone().filter(|_| self.failing.is_some())
    }

    pub(super) fn held_by(&self, owner: Owner) -> impl Iterator<Item = Asker> {
        self.slots
            .iter()
            .filter(|slot| slot.state == State::Leased)
            .filter_map(|slot| slot.asker)
            .filter(move |asker| asker.owner == Some(owner))
    }

    /// Did this asker, who has just joined the line, close a circle? Only one who holds a lease can.
    pub(super) fn closes_circle(&self, asker: Asker, now: Moment) -> Option<Vec<Holder>> {
        let holds = self.held_by(asker.owner?).next().is_some();
        (holds && self.is_circle()).then(|| self.holders(now))
    }

    /// The same for one who was just given a lease while another of its acquires is still in line. Looked for only while few wait: behind
    /// a long line it would cost every claim, and the timeout error names the circle all the same.
    pub(super) fn circle_closed_by_grant(&self, slot: SlotNo, now: Moment) -> Option<Vec<Holder>> {
        if self.queue.is_empty() || self.queue.len() > self.max_size {
            return None;
        }
        let owner = Some(self.slots[slot].asker?.owner?);
        let waits = self.queue.line().any(|waiter| waiter.asker.owner == owner);
        (waits && self.is_circle()).then(|| self.holders(now))
    }

    /// Is every lease held by somebody who waits in this line, and nothing else on its way?
    ///
    /// Not a proof of a deadlock: a task may use one lease while it waits for another. But nearly always it is one.
    fn is_circle(&self) -> bool {
        if self.limits.nested == Nested::Allow
            || self.queue.is_empty()
            || self.occupied() < self.max_size
        {
            return false;
        }
        self.slots
            .iter()
            .filter(|slot| slot.state != State::Vacant)
            .all(|slot| {
                slot.state == State::Leased && !slot.is_unclaimed() && self.holder_waits(slot)
            })
    }

    /// Does whoever holds this slot wait in line? Nearly always not, and then nobody is looked at twice.
    fn holder_waits(&self, slot: &Slot<R>) -> bool {
        let Some(owner) = slot.asker.and_then(|asker| asker.owner) else {
            return false;
        };
        let mut newcomers = self.queue.newcomers(slot.not_in_line.get());
        let waits = newcomers.any(|waiter| waiter.asker.owner == Some(owner));
        if !waits {
            slot.not_in_line.set(self.queue.last_serial());
        }
        waits
    }

    /// Panics if an invariant does not hold.
    pub(crate) fn assert_sound(&self, now: Moment) {
        let status = self.status(now);
        // I1
        assert_eq!(
            status.total + status.closing + self.vacant.len(),
            self.slots.len(),
            "I1: a slot is in no state"
        );
        assert_eq!(
            self.vacant.len(),
            self.count(State::Vacant),
            "I1: the vacant list is wrong"
        );
        assert_eq!(self.shelf.len(), status.idle, "I1: the shelf is wrong");
        for slot in &self.slots {
            let here = match slot.state {
                State::Idle => true,
                State::Leased => slot.resource.is_some(),
                State::Vacant
                | State::Opening
                | State::Aside
                | State::Checking
                | State::Cleaning
                | State::Closing => false,
            };
            assert_eq!(
                slot.resource.is_some(),
                here,
                "I1: a resource in {:?}",
                slot.state
            );
        }
        let sorted = self.shelf.iter().zip(self.shelf.iter().skip(1));
        for (colder, hotter) in sorted {
            assert!(
                self.slots[*colder].used_at <= self.slots[*hotter].used_at,
                "the shelf is not sorted"
            );
        }
        // I2
        let wanted = self.queue.len().min(self.allowance());
        if wanted > 0 {
            // In the exact order, the next one may have to wait until the oldest is checked.
            let exact = self.limits.idle_order == IdleOrder::Oldest;
            let fit =
                |slot: &SlotNo| self.worn(*slot, now).is_none() && !self.needs_vetting(*slot, now);
            assert!(
                exact || !self.shelf.iter().any(fit),
                "I2: a fit resource is idle while somebody waits"
            );
            let coming = status.opening + status.checking + status.cleaning;
            // A backend that refuses is left alone for a while. Nobody is told when that is over: who waits looks again.
            let left_alone = self.failing.is_some();
            let may_open = self.has_room() && status.opening < self.opens_at_first() && !left_alone;
            let stuck = coming < wanted && (may_open || !self.shelf.is_empty());
            assert!(
                !stuck,
                "I2: nothing is on its way for one who waits, though there is room"
            );
        }
        // I3
        let line: Vec<_> = self.queue.line().map(|waiter| waiter.serial()).collect();
        assert_eq!(
            line.len(),
            self.queue.len(),
            "I3: the line has lost somebody"
        );
        assert!(line.is_sorted(), "I3: the line is not in order");
        // I8
        let (waiting, aside) = (self.queue.len(), self.count(State::Aside));
        assert_eq!(
            aside,
            self.aside.len(),
            "I8: what is set aside is not listed"
        );
        assert!(
            waiting == 0 || aside == 0,
            "I8: set aside while somebody waits"
        );
        // I6
        if self.closed {
            assert_eq!(
                (status.idle, status.waiting),
                (0, 0),
                "I6: closed, and still something idle or waiting"
            );
            assert!(
                !self.slots.iter().any(super::Slot::is_unclaimed),
                "I6: closed, and still something granted"
            );
        }
    }
}
