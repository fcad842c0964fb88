//! What can be seen of the ledger: status, health, holders, and the report of a timeout.

use std::cmp::Reverse;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use super::slot::{Asker, Label, Slot, SlotNo, State};
use super::{Ledger, Resource};
use crate::breaker::BreakerState;
use crate::error::{AcquireError, OpenError, Unavailable};
use crate::rt::Owner;
use crate::rt::sync::Ordering;
use crate::status::{Health, Holder, HolderGroup, HolderId, RefusalReason, Status, Used};
use crate::time::Moment;
use crate::timed_out::{Phase, Report};

impl<R: Resource> Ledger<R> {
    pub(crate) fn status(&self, now: Moment) -> Status {
        let unclaimed = self.slots.iter().filter(|slot| slot.is_unclaimed()).count();
        let first = self.waiters.first();
        let (idle, opening) = (self.count(State::Idle), self.count(State::Opening));
        let (cleaning, checking) = (self.count(State::Cleaning), self.count(State::Checking));
        let in_use = self.in_use();
        Status {
            max_size: self.max_size,
            idle,
            in_use,
            opening,
            cleaning,
            checking,
            total: idle + in_use + opening + cleaning + checking,
            closing: self.count(State::Closing),
            reserved: self.reserved,
            waiting: self.waiters.len(),
            oldest_wait: first.map(|waiter| now.saturating_duration_since(waiter.since)),
            acquired: self.lent - unclaimed as u64,
            waited: self.waiters.joined(),
            wait_time: Duration::from_nanos(self.wait_time),
            released: self.released(),
            held_time: Duration::from_nanos(self.held_time),
            ..self.counts.clone()
        }
    }

    pub(super) fn count_refusal(&mut self, reason: Option<RefusalReason>) {
        if let Some(reason) = reason {
            self.counts.refusals.add(reason);
        }
    }

    /// When a resource last came back or was opened.
    fn progressed_at(&self) -> Option<Moment> {
        let once_open = self.slots.iter().filter(|slot| slot.id > 0);
        once_open.map(|slot| slot.used_at).max()
    }

    /// Every living lease and every unclaimed grant, the longest first.
    pub(crate) fn holders(&self, now: Moment) -> Vec<Holder> {
        let mut holders: Vec<_> = (0..self.slots.len())
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
            task: asker.owner.map(HolderId),
            held_for: now.saturating_duration_since(slot.since),
            used: used(slot, now),
            label: slot.label.as_ref().map(|label| label.text.clone()),
            claimed: !slot.is_unclaimed(),
        })
    }

    pub(crate) fn opened_at(&self, slot: SlotNo) -> Moment {
        self.slots[slot].opened_at
    }

    pub(crate) fn set_label(&mut self, slot: SlotNo, label: Option<Label>) -> Option<Label> {
        std::mem::replace(&mut self.slots[slot].label, label)
    }

    /// The verdict on the pool, without acquiring anything.
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
        if self.alive() == 0 {
            if let Some(at) = self.down_since(now) {
                return Health::Down {
                    down_for: since(at),
                };
            }
        }
        if self.counts.opened == 0 {
            return Health::Unproven;
        }
        if self.waiters.is_empty() && !self.is_exhausted() {
            return Health::Healthy;
        }
        let unserved = self.unserved_since.filter(|_| self.is_wanted(now));
        if let Some(unserved) = unserved.filter(|_| !self.suspended) {
            let silent_for = since(unserved.max(self.progressed_at().unwrap_or(unserved)));
            if silent_for >= self.limits.stuck_after {
                return Health::Stuck { silent_for };
            }
        }
        Health::Busy
    }

    /// Returns whether callers want resources: one waits, or one gave up so recently that there was
    /// no gap.
    pub(super) fn is_wanted(&self, now: Moment) -> bool {
        !self.waiters.is_empty()
            || now.saturating_duration_since(self.gave_up_at) < self.limits.stuck_after
    }

    /// Since when nothing can be opened, where no resource is left: opens fail, or hang.
    fn down_since(&self, now: Moment) -> Option<Moment> {
        let opening = self.working.iter().map(|slot| &self.slots[*slot]);
        let opening = opening.filter(|slot| slot.state == State::Opening);
        let oldest = opening.map(|slot| slot.since).min();
        let half = self.limits.open_timeout.map(|limit| limit / 2);
        let hung = oldest.filter(|at| half.is_some_and(|half| *at + half <= now));
        let failing = self.failing.as_ref().map(|failing| failing.since);
        let overdue = self.open_overdue;
        [failing, overdue, hung].into_iter().flatten().min()
    }

    /// The state of the pool for waiters that time out now.
    pub(super) fn report(&mut self, now: Moment) -> Arc<Report<R::Error>> {
        let circle_told = self.circle_at_timeout();
        let untold = circle_told
            .as_ref()
            .filter(|told| !told.load(Ordering::Acquire));
        let circle = untold.map_or_else(Vec::new, |_| self.holders(now));
        Arc::new(Report {
            pool: Arc::clone(&self.name),
            at: now,
            status: self.status(now),
            holders: self.groups(now),
            circle_told,
            circle,
            last_failure: self.last_failure(),
            note: self.note.clone(),
        })
    }

    /// The living leases by source line and label, the longest first.
    pub(super) fn groups(&self, now: Moment) -> Vec<HolderGroup> {
        let mut groups: Vec<HolderGroup> = Vec::new();
        for slot in self.slots.iter().filter(|slot| slot.state == State::Leased) {
            let Some(Asker { site, .. }) = slot.asker else {
                continue;
            };
            let longest = now.saturating_duration_since(slot.since);
            let claimed = !slot.is_unclaimed();
            let known = groups.iter_mut().find(|group| {
                is_same_line(group.site, site)
                    && group.label.as_ref() == slot.label.as_ref().map(|label| &label.text)
                    && group.claimed == claimed
            });
            match known {
                None => groups.push(HolderGroup {
                    site,
                    count: 1,
                    longest,
                    used: used(slot, now),
                    label: slot.label.as_ref().map(|label| label.text.clone()),
                    claimed,
                }),
                Some(group) => {
                    group.count += 1;
                    if longest > group.longest {
                        (group.longest, group.used) = (longest, used(slot, now));
                    }
                }
            }
        }
        groups.sort_by_key(|group| Reverse(group.longest));
        groups
    }

    /// How many waiters are ahead of the one of this rank. Not counted beyond the resources that
    /// are on their way.
    pub(super) fn ahead_of(&self, rank: u64) -> usize {
        let on_its_way = self.working.len() + self.count(State::Closing);
        let ahead = self.waiters.line().take(on_its_way);
        ahead.take_while(|waiter| waiter.rank < rank).count()
    }

    /// What a waiter with so many ahead of it waits for.
    pub(super) fn phase(&self, ahead: usize, status: &Status) -> Phase {
        if self.suspended {
            return Phase::Suspended;
        }
        if self.breaker.state == BreakerState::Recovering && self.allowance() == 0 {
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

    /// Returns whether no open has succeeded since one failed, or since one hung until its waiter
    /// timed out.
    pub(super) fn is_down(&self) -> bool {
        self.is_failing() || self.open_overdue.is_some()
    }

    /// Returns whether no open has succeeded since one failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.is_some()
    }

    /// The last error of an open, unless one succeeded since.
    pub(crate) fn last_failure(&self) -> Option<OpenError<R::Error>> {
        self.last_failure
            .as_deref()
            .filter(|_| self.failing.is_some())
            .cloned()
    }

    /// The error of a caller while the breaker is inactive.
    pub(super) fn unavailable(&self, now: Moment) -> AcquireError<R::Error> {
        let breaker = &self.breaker;
        // Before the strategy was asked, the time of its next decision is not known.
        let retry_at = breaker.ask_at.filter(|at| *at > breaker.since);
        AcquireError::Unavailable(Box::new(Unavailable {
            pool: Arc::clone(&self.name),
            since: now.saturating_duration_since(breaker.since),
            retry_after: retry_at.map(|at| at.saturating_duration_since(now)),
            cause: breaker.cause.clone(),
        }))
    }

    /// The leases of this holder.
    pub(super) fn held_by(&self, owner: Owner) -> impl Iterator<Item = Asker> {
        let leased = |slot: &&Slot<R>| slot.state == State::Leased;
        self.slots
            .iter()
            .filter(leased)
            .filter_map(|slot| slot.asker)
            .filter(move |asker| asker.owner == Some(owner))
    }
}

/// What the meter of a lease shows.
fn used<R: Resource>(slot: &Slot<R>, now: Moment) -> Option<Used> {
    let meter = slot.label.as_ref()?.meter.as_ref()?;
    Some(meter.read_at(now))
}

/// Returns whether two sites are on one source line. One place nearly always has one location, and
/// comparing names takes longer.
fn is_same_line(one: &'static Location<'static>, other: &'static Location<'static>) -> bool {
    ptr::eq(one, other) || one.line() == other.line() && one.file() == other.file()
}
