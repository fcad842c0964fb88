//! What can be seen of the ledger: counts, holders, health; and the check of its invariants.

use std::cmp::Reverse;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;

use super::slot::{Asker, Label, SlotNo, State};
use super::{Ledger, Resource, Ticket};
use crate::breaker::BreakerState;
use crate::config::IdleOrder;
use crate::error::Phase;
use crate::moment::Moment;
use crate::rt::Owner;
use crate::status::{Health, Holder, HolderGroup, Status, Task};

/// What was seen when somebody ran out of time.
#[derive(Clone, Debug)]
pub(crate) struct Report<F> {
    pub(crate) pool: Arc<str>,
    /// When that was.
    pub(crate) at: Moment,
    pub(crate) phase: Phase,
    pub(crate) status: Status,
    pub(crate) holders: Vec<HolderGroup>,
    pub(crate) nested: bool,
    pub(crate) last_failure: Option<F>,
}

pub(super) type Seen<R> = Arc<Report<<R as Resource>::Failure>>;

impl<R: Resource> Ledger<R> {
    pub(crate) fn status(&self, now: Moment) -> Status {
        let counts = &self.counts;
        let mut status = Status {
            max_size: self.max_size,
            waiting: self.queue.len(),
            waited: self.queue.joined(),
            wait_time: self.queue.wait_time(),
            discarded: counts.discarded,
            detached: counts.detached,
            opened: counts.opened,
            open_failed: counts.open_failed,
            timed_out: counts.timed_out,
            cancelled: counts.cancelled,
            leaked: counts.leaked,
            closed: counts.closed.clone(),
            ..Status::default()
        };
        let (mut lent, mut unclaimed) = (counts.acquired, 0);
        for slot in &self.slots {
            lent += slot.uses;
            match slot.state {
                State::Vacant => {}
                State::Opening => status.opening += 1,
                State::Idle => status.idle += 1,
                State::Leased | State::Aside => status.in_use += 1,
                State::Checking => status.checking += 1,
                State::Cleaning => status.cleaning += 1,
                State::Closing => status.closing += 1,
            }
            if let Some(seat) = slot.seat {
                let waiter = self.queue.at(seat);
                let waited = slot.since.saturating_duration_since(waiter.since);
                status.wait_time = status.wait_time.saturating_add(waited);
                unclaimed += u64::from(!waiter.has_claimed());
            }
        }
        status.total =
            status.idle + status.in_use + status.opening + status.cleaning + status.checking;
        status.released = lent - status.detached - status.in_use as u64;
        status.acquired = lent - unclaimed;
        let first = self.queue.first();
        status.oldest_wait = first.map(|waiter| now.saturating_duration_since(waiter.since));
        status
    }

    /// How many leases came back.
    pub(super) fn released(&self) -> u64 {
        let lent = self.slots.iter().map(|slot| slot.uses).sum::<u64>() + self.counts.acquired;
        let out = self.count(State::Leased) + self.count(State::Aside);
        lent - self.counts.detached - out as u64
    }

    /// When something last came back or was opened.
    fn progressed_at(&self) -> Option<Moment> {
        let once_open = self.slots.iter().filter(|slot| slot.id > 0);
        once_open.map(|slot| slot.used_at).max()
    }

    /// Every living lease, the longest first.
    pub(crate) fn holders(&self, now: Moment) -> Vec<Holder> {
        let mut holders: Vec<_> = (0..self.slots.len())
            .filter(|slot| !self.is_unclaimed(*slot))
            .filter_map(|slot| self.holder(slot, now))
            .collect();
        holders.sort_by_key(|holder| Reverse(holder.held_for));
        holders
    }

    pub(super) fn holder(&self, slot: SlotNo, now: Moment) -> Option<Holder> {
        let slot = &self.slots[slot];
        let asker = slot.asker.filter(|_| slot.state == State::Leased)?;
        Some(Holder {
            id: slot.id,
            site: asker.site,
            task: asker.owner.map(Task),
            held_for: now.saturating_duration_since(slot.since),
            label: slot.label.as_deref().cloned(),
        })
    }

    /// Granted, but not yet taken by its waiter?
    pub(super) fn is_unclaimed(&self, slot: SlotNo) -> bool {
        let seat = self.slots[slot].seat;
        seat.is_some_and(|seat| !self.queue.at(seat).has_claimed())
    }

    pub(crate) fn opened_at(&self, slot: SlotNo) -> Moment {
        self.slots[slot].opened_at
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
            self.progressed_at()
                .map_or(first.since, |at| at.max(first.since)),
        );
        if silent_for >= self.limits.stuck_after && !self.suspended {
            return Health::Stuck { silent_for };
        }
        Health::Busy
    }

    /// What one who is still in line should be told when its time is over.
    pub(super) fn report(&mut self, ticket: Ticket, pool: &Arc<str>, now: Moment) -> Seen<R> {
        let status = self.status(now);
        Arc::new(Report {
            pool: Arc::clone(pool),
            at: now,
            phase: self.phase(self.ahead_of(ticket, &status), &status),
            status,
            holders: self.groups(now),
            nested: self.is_circle(),
            last_failure: self.last_failure(),
        })
    }

    /// The living leases by call site, the longest first.
    fn groups(&self, now: Moment) -> Vec<HolderGroup> {
        let mut groups: Vec<HolderGroup> = Vec::new();
        for number in 0..self.slots.len() {
            let slot = &self.slots[number];
            let asker = slot.asker.filter(|_| slot.state == State::Leased);
            let Some(Asker { site, .. }) = asker.filter(|_| !self.is_unclaimed(number)) else {
                continue;
            };
            let longest = now.saturating_duration_since(slot.since);
            let label = || slot.label.as_deref().cloned();
            match groups.iter_mut().find(|group| is_same(group.site, site)) {
                None => groups.push(HolderGroup {
                    site,
                    count: 1,
                    longest,
                    label: label(),
                }),
                Some(group) => {
                    group.count += 1;
                    if group.longest < longest {
                        group.longest = longest;
                        group.label = label();
                    }
                }
            }
        }
        groups.sort_by_key(|group| Reverse(group.longest));
        groups
    }

    /// How many are ahead of this one in line. Not counted beyond what is on its way to them.
    fn ahead_of(&self, ticket: Ticket, status: &Status) -> usize {
        let on_its_way = status.opening + status.checking + status.cleaning + status.closing;
        let ahead = self.queue.line().take(on_its_way);
        ahead
            .take_while(|waiter| waiter.serial() < ticket.serial)
            .count()
    }

    /// What one is waiting for who has so many ahead of them.
    pub(super) fn phase(&self, ahead: usize, status: &Status) -> Phase {
        if self.suspended {
            return Phase::Suspended;
        }
        if self.allowance() == 0 {
            return Phase::Recovering;
        }
        let opening = status.opening;
        let checking = opening + status.checking;
        let cleaning = checking + status.cleaning;
        let closing = cleaning + status.closing;
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
    pub(crate) fn last_failure(&self) -> Option<R::Failure> {
        self.last_failure
            .as_deref()
            .filter(|_| self.failing.is_some())
            .cloned()
    }

    pub(super) fn held_by(&self, owner: Owner) -> impl Iterator<Item = Asker> {
        self.slots
            .iter()
            .filter(|slot| slot.state == State::Leased)
            .filter_map(|slot| slot.asker)
            .filter(move |asker| asker.owner == Some(owner))
    }

    /// In debug builds only.
    #[inline]
    pub(super) fn stay_sound(&self, now: Moment) {
        if cfg!(debug_assertions) {
            // Whoever read the clock first may get the lock last: what was decided later is judged by that later time.
            self.latest.set(self.latest.get().max(now));
            self.assert_sound(self.latest.get());
        }
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
            let here = slot.state == State::Idle;
            assert_eq!(
                slot.resource.is_some(),
                here,
                "I1: a resource in {:?}",
                slot.state
            );
            assert!(
                slot.seat.is_none() || slot.state == State::Leased,
                "I1: {:?}, and somebody's",
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
                !self.queue.any_mail(),
                "I6: closed, and still something granted"
            );
        }
    }
}

/// One place has one location nearly always, and to compare names takes longer.
fn is_same(one: &'static Location<'static>, other: &'static Location<'static>) -> bool {
    ptr::eq(one, other) || one == other
}
