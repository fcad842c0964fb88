//! Deadlines: when the alarm must go off, and the waiters that time out.
//!
//! The ledger knows every deadline and sets the alarm for the first of them. A waiter needs no
//! timer of its own, which would cost more than the rest of a wait (deadpool pays 400 ns for its
//! timers). Waiters that time out together share one report, because a report counts all slots: a
//! thousand timeouts cost 2 µs each, and four with a report of their own.

use std::sync::Arc;
use std::time::Duration;

use super::waiters::Departed;
use super::{HELD_UP_AFTER, Ledger, Mail, Orders, Resource, Ticket};
use crate::config::Limits;
use crate::time::Moment;
use crate::timed_out::{Phase, Report};

/// An alarm that should have gone off this long ago is held up: it was set in a process that
/// forked, its thread could not be started, or a waker blocks that thread. Upkeep does its round,
/// and the next waiter sets it anew.
pub(super) const MISSED: Duration = Duration::from_millis(10);

/// How many waiters time out in one round. The lock is released in between.
const AT_ONCE: usize = 4096;

/// Looks are no more frequent than this, however short `slow_acquire` is.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);

/// How often the first waiters look again: for work that is held up, and whether they are slow.
pub(crate) fn looks_every(limits: &Limits) -> Duration {
    let slow = limits.slow_acquire.filter(|_| cfg!(feature = "tracing"));
    let slow = slow.unwrap_or(HELD_UP_AFTER);
    slow.clamp(SHORTEST_LOOK, HELD_UP_AFTER)
}

/// The waiters that time out in one call, and the report that they share. It is made when it is
/// first needed.
pub(super) struct Round<R: Resource> {
    report: Option<Arc<Report<R::Error>>>,
    told: usize,
}

impl<R: Resource> Round<R> {
    pub(super) fn new() -> Self {
        Self {
            report: None,
            told: 0,
        }
    }
}

impl<R: Resource> Ledger<R> {
    /// Registers a waiter's deadline, unless the alarm is set for an earlier moment.
    #[inline]
    pub(super) fn set_alarm(&mut self, deadline: Moment, now: Moment, orders: &mut Orders<R>) {
        let at = deadline.min(now + self.looks_every);
        let is_set = |set: Moment| set <= at && now <= set + MISSED;
        if !self.alarm_at.is_some_and(is_set) {
            self.insert_alarm(at, now, orders);
        } else if self.wakes_at.is_some_and(|at| deadline + MISSED < at) {
            // The alarm is set for a look, or for a waiter that is gone. Upkeep may have to stand
            // in for this deadline.
            self.due(deadline + MISSED, orders);
        }
    }

    /// A deadline that has passed sets the alarm for now. Otherwise an alarm that is held up would
    /// be set anew by every caller.
    #[cold]
    fn insert_alarm(&mut self, at: Moment, now: Moment, orders: &mut Orders<R>) {
        let at = self.next_alarm().map_or(at, |next| next.min(at)).max(now);
        self.alarm_at = Some(at);
        orders.rest().alarm = Some(at);
        if let Some(at) = self.stand_in_at() {
            self.due(at, orders);
        }
    }

    /// When the alarm must go off: for the first deadline, or for the next look of the waiters.
    pub(super) fn next_alarm(&self) -> Option<Moment> {
        let mut next = self.next_deadline();
        if !self.waiters.is_empty() {
            next = next.min(self.looked_at + self.looks_every);
        }
        (next < Moment::NEVER).then_some(next)
    }

    /// When upkeep does the round of an alarm that did not go off. Only for deadlines, because the
    /// looks can wait.
    pub(super) fn stand_in_at(&self) -> Option<Moment> {
        let next = self.next_deadline();
        (next < Moment::NEVER).then(|| next + MISSED)
    }

    /// The first deadline of a waiter, or of an unclaimed grant.
    fn next_deadline(&self) -> Moment {
        self.waiters.next_deadline().min(self.unclaimed_until)
    }

    /// Times out the first waiters as long as their deadlines have passed. The others that are
    /// overdue time out with them.
    #[inline]
    pub(super) fn time_out_first(&mut self, now: Moment, orders: &mut Orders<R>) {
        let is_overdue = |ledger: &Self| {
            let first = ledger.waiters.first();
            first.is_some_and(|first| first.deadline <= now)
        };
        while is_overdue(self) {
            self.time_out_all(&mut Round::new(), now, orders);
        }
    }

    /// Times out every waiter whose deadline has passed, up to a limit.
    #[cold]
    pub(super) fn time_out_all(
        &mut self,
        round: &mut Round<R>,
        now: Moment,
        orders: &mut Orders<R>,
    ) {
        while round.told < AT_ONCE && self.waiters.next_deadline() <= now {
            self.counts.timed_out += 1;
            let report = self.report_of(round, now);
            let Some((rank, waiter)) = self.waiters.take_overdue(now) else {
                break;
            };
            let ahead = round.told + self.ahead_of(rank);
            round.told += 1;
            self.deliver_timeout(waiter, report, ahead, now, orders);
        }
        if round.told > 0 {
            self.queue_is_shorter(now, orders);
        }
    }

    /// Times out one waiter, which found its deadline passed when it was polled.
    pub(super) fn time_out(&mut self, ticket: Ticket, now: Moment, orders: &mut Orders<R>) {
        let rank = self.waiters.waiter(ticket).map_or(0, |waiter| waiter.rank);
        self.counts.timed_out += 1;
        let report = self.report(now);
        if let Some(waiter) = self.waiters.take(ticket) {
            let ahead = self.ahead_of(rank);
            self.deliver_timeout(waiter, report, ahead, now, orders);
            self.queue_is_shorter(now, orders);
        }
    }

    fn deliver_timeout(
        &mut self,
        waiter: Departed<R>,
        seen: Arc<Report<R::Error>>,
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
        waiter.mailbox.deliver(Mail::TimedOut(phase, seen));
        orders.wake_waiter(waiter.waker);
    }

    pub(super) fn report_of(&mut self, round: &mut Round<R>, now: Moment) -> Arc<Report<R::Error>> {
        let report = round.report.take().unwrap_or_else(|| self.report(now));
        Arc::clone(round.report.insert(report))
    }
}
