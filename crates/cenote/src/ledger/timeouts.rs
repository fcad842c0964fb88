//! Timeouts: when the alarm must go off, and what happens then.
//!
//! The ledger knows every deadline, and the alarm runs a round when the first of them passes. A round delivers one timeout to each waiter
//! whose deadline has passed, all with one shared report, and takes back grants that their waiters did not claim in time. So a deadline holds
//! although its waiter is not polled. Once a second a round also wakes the first waiters, so that they look for what is held up.

use std::sync::Arc;
use std::time::Duration;

use super::answers::{Refusal, TimeIsUp};
use super::waiters::Departed;
use super::{HELD_UP_AFTER, Ledger, Orders, Report, Resource, Ticket};
use crate::error::Phase;
use crate::moment::Moment;

/// An alarm that should have gone off this long ago is held up: it was set in a process that forked, its thread could not be started, or a
/// waker blocks that thread. Upkeep does its round, and the next waiter sets it anew.
const MISSED: Duration = Duration::from_millis(10);

/// How many waiters time out in one round: the lock is released in between.
const AT_ONCE: usize = 4096;

/// The report of one round, made when it is first needed.
struct Round<R: Resource> {
    report: Option<Arc<Report<R::Failure>>>,
    told: usize,
}

impl<R: Resource> Ledger<R> {
    /// Returns whether the alarm was ever set.
    pub(crate) fn was_alarm_set(&self) -> bool {
        self.waiters.joined() > 0
    }

    /// Registers a waiter's deadline, unless the alarm is set for an earlier moment.
    #[inline]
    pub(super) fn set_alarm(&mut self, deadline: Moment, now: Moment, orders: &mut Orders<R>) {
        let at = deadline.min(now + HELD_UP_AFTER);
        let is_needed = self
            .alarm_at
            .is_none_or(|set| at < set || set + MISSED < now);
        if is_needed {
            self.insert_alarm(at, orders);
        } else if self
            .wakes_at
            .is_some_and(|wakes_at| deadline + MISSED < wakes_at)
        {
            // The alarm is set for a look, or for a waiter that is gone: upkeep may have to stand in for this deadline.
            self.due(deadline + MISSED, orders);
        }
    }

    #[cold]
    fn insert_alarm(&mut self, at: Moment, orders: &mut Orders<R>) {
        let at = self.next_alarm().map_or(at, |next| next.min(at));
        self.alarm_at = Some(at);
        orders.alarm = Some(at);
        if let Some(at) = self.stand_in_at() {
            self.due(at, orders);
        }
    }

    /// The alarm was set by a process that forked: in this one it is missed, and has to be set anew.
    pub(crate) fn forget_alarm(&mut self) {
        self.alarm_at = self.alarm_at.map(|_| Moment::PAST);
    }

    pub(crate) fn is_alarm_set(&self) -> bool {
        self.alarm_at.is_some()
    }

    /// The alarm that was set for `at` goes off. Returns when it must go off next. An alarm that was overtaken by an earlier one means
    /// nothing.
    pub(crate) fn alarm(&mut self, at: Moment, now: Moment) -> (Option<Moment>, Orders<R>) {
        let mut orders = Orders::default();
        if self.alarm_at != Some(at) {
            return (None, orders);
        }
        self.go_off(now, &mut orders);
        (self.alarm_at, self.finish(orders, now))
    }

    /// The same for the upkeep task, where the alarm is held up.
    pub(super) fn stand_in_for_alarm(&mut self, now: Moment, orders: &mut Orders<R>) {
        if self.stand_in_at().is_some_and(|at| at <= now) {
            self.go_off(now, orders);
            orders.alarm = self.alarm_at;
        }
    }

    /// When upkeep looks whether the alarm went off: only for deadlines, because the looks can wait.
    pub(super) fn stand_in_at(&self) -> Option<Moment> {
        let next = self.next_deadline();
        (next < Moment::NEVER).then(|| next + MISSED)
    }

    /// The first deadline of a waiter, or of an unclaimed grant.
    fn next_deadline(&self) -> Moment {
        self.waiters.next_deadline().min(self.unclaimed_until)
    }

    fn go_off(&mut self, now: Moment, orders: &mut Orders<R>) {
        self.time_out_all(now, orders);
        if !self.waiters.is_empty() && self.looked_at + HELD_UP_AFTER <= now {
            self.looked_at = now;
            self.wake_first(orders);
        }
        self.alarm_at = self.next_alarm();
    }

    pub(super) fn next_alarm(&self) -> Option<Moment> {
        let mut next = self.next_deadline();
        if !self.waiters.is_empty() {
            next = next.min(self.looked_at + HELD_UP_AFTER);
        }
        (next < Moment::NEVER).then_some(next)
    }

    /// Times out every waiter whose deadline has passed, and takes back every grant that was not claimed in time.
    pub(super) fn time_out_all(&mut self, now: Moment, orders: &mut Orders<R>) {
        let mut round = Round {
            report: None,
            told: 0,
        };
        while round.told < AT_ONCE && self.waiters.next_deadline() <= now {
            self.counts.timed_out += 1;
            let report = self.report_of(&mut round, now);
            let Some((rank, waiter)) = self.waiters.take_overdue(now) else {
                break;
            };
            let ahead = round.told + self.ahead_of(rank);
            round.told += 1;
            self.deliver_timeout(waiter, report, ahead, now, orders);
        }
        // Those that are left time out first, in the next round: nothing is given to them.
        if self.unclaimed_until <= now && self.waiters.next_deadline() > now {
            self.revoke_overdue(&mut round, now, orders);
        }
        if round.told > 0 && self.waiters.is_empty() && self.stepped_back {
            self.due(now, orders);
        }
    }

    /// The deadline of this waiter has passed.
    pub(super) fn time_out(&mut self, ticket: Ticket, now: Moment, orders: &mut Orders<R>) {
        let rank = self.waiters.waiter(ticket).map_or(0, |waiter| waiter.rank);
        self.counts.timed_out += 1;
        let report = self.report(now);
        if let Some(waiter) = self.waiters.take(ticket) {
            let ahead = self.ahead_of(rank);
            self.deliver_timeout(waiter, report, ahead, now, orders);
            if self.waiters.is_empty() && self.stepped_back {
                self.due(now, orders);
            }
        }
    }

    fn deliver_timeout(
        &mut self,
        waiter: Departed<R>,
        seen: Arc<Report<R::Failure>>,
        ahead: usize,
        now: Moment,
        orders: &mut Orders<R>,
    ) {
        let phase = self.phase(ahead, &seen.status);
        if phase == Phase::Opening && self.alive() == 0 {
            self.open_overdue.get_or_insert(now);
        }
        self.gave_up_at = now;
        self.wait_time += now.nanoseconds_since(waiter.since);
        let since = waiter.since;
        waiter
            .mailbox
            .deliver(Err(Refusal::TimedOut(TimeIsUp { since, phase, seen })));
        orders.wake_waiter(waiter.waker);
    }

    /// Takes back the grants whose waiters did not claim them before their deadline: each goes to the next waiter.
    #[cold]
    fn revoke_overdue(&mut self, round: &mut Round<R>, now: Moment, orders: &mut Orders<R>) {
        let mut next = Moment::NEVER;
        let mut freed = Vec::new();
        for slot in 0..self.slots.len() {
            let entry = &self.slots[slot];
            if !entry.is_unclaimed() {
                continue;
            }
            if entry.deadline > now {
                next = next.min(entry.deadline);
                continue;
            }
            let since = entry.waiting_since;
            let seen = self.report_of(round, now);
            let refusal = Refusal::TimedOut(TimeIsUp {
                since,
                phase: Phase::Queued,
                seen,
            });
            let mailbox = self.slots[slot].mailbox.as_ref();
            match mailbox.map(|mailbox| mailbox.revoke(refusal)) {
                Some(Ok(grant)) => {
                    self.counts.timed_out += 1;
                    freed.push(grant);
                }
                // The waiter was quicker.
                Some(Err(refusal)) => orders.discard(Err(refusal)),
                None => {}
            }
        }
        self.unclaimed_until = next;
        for grant in freed {
            let slot = self.take_back(grant, now);
            self.place(slot, now, orders);
        }
    }

    fn report_of(&mut self, round: &mut Round<R>, now: Moment) -> Arc<Report<R::Failure>> {
        if round.report.is_none() {
            round.report = Some(self.report(now));
        }
        let report = round.report.as_ref();
        Arc::clone(report.expect("bug: it was just made"))
    }
}
