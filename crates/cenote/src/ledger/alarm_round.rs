//! Entry: the alarm goes off.
//!
//! A round times out the waiters whose deadlines have passed and takes back the grants that were
//! not claimed in time, whether or not their waiters are polled. Once a second a round also wakes
//! the first waiters, so that they look for work that is held up and say that they are slow.

use super::deadlines::Round;
use super::places::Placed;
use super::{Ledger, Mail, Many, Orders, Resource};
use crate::time::Moment;
use crate::timed_out::Phase;

impl<R: Resource> Ledger<R> {
    /// The alarm that was set for `at` goes off. Returns when it must go off next. An alarm that
    /// was overtaken by an earlier one does nothing.
    pub(crate) fn alarm(
        &mut self,
        at: Moment,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Option<Moment> {
        if self.alarm_at != Some(at) {
            return None;
        }
        self.go_off(now, orders);
        self.end(orders, now);
        self.alarm_at
    }

    /// The upkeep task runs: it does the round of an alarm that is held up.
    pub(crate) fn stand_in_for_alarm(&mut self, now: Moment, orders: &mut Orders<R>) {
        if self.stand_in_at().is_some_and(|at| at <= now) {
            self.go_off(now, orders);
            orders.rest().alarm = self.alarm_at;
        }
    }

    fn go_off(&mut self, now: Moment, orders: &mut Orders<R>) {
        let mut round = Round::new();
        self.time_out_all(&mut round, now, orders);
        // Overdue waiters that are left time out in the next round, before a resource comes free.
        if self.unclaimed_until <= now && self.waiters.next_deadline() > now {
            self.revoke_overdue(&mut round, now, orders);
        }
        // A waiter that timed out may have had a place, which is free now.
        self.serve(now, orders);
        if !self.waiters.is_empty() && self.looked_at + self.looks_every <= now {
            self.looked_at = now;
            self.wake_first(orders);
        }
        self.alarm_at = self.next_alarm();
    }

    /// Takes back the grants whose waiters did not claim them before their deadline. Each goes to
    /// the next waiter.
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
            let timed_out = Mail::TimedOut(Phase::Queued, self.report_of(round, now));
            let mailbox = self.slots[slot].mailbox.as_ref();
            match mailbox.map(|mailbox| mailbox.revoke(timed_out)) {
                Some(Ok(resource)) => {
                    self.counts.timed_out += 1;
                    freed.push(resource);
                }
                // The waiter was quicker.
                Some(Err(mail)) => orders.drop_later(Some(Many::Unread(mail))),
                None => {}
            }
        }
        let is_over = |placed: &Placed<R>| placed.deadline <= now;
        let timed_out =
            |ledger: &mut Self| Mail::TimedOut(Phase::Queued, ledger.report_of(round, now));
        let before = self.reserved;
        self.revoke_places(is_over, timed_out, orders);
        self.counts.timed_out += (before - self.reserved) as u64;
        let unclaimed = self.placed.iter().map(|placed| placed.deadline);
        self.unclaimed_until = unclaimed.fold(next, Moment::min);
        for resource in freed {
            let slot = self.take_back(resource, now);
            self.place(slot, now, orders);
        }
    }

    /// Returns whether the alarm was ever set.
    pub(crate) fn was_alarm_set(&self) -> bool {
        self.waiters.joined() > 0
    }

    pub(crate) fn is_alarm_set(&self) -> bool {
        self.alarm_at.is_some()
    }

    /// The alarm was set by a process that forked. In this one it is missed, and has to be set
    /// anew.
    pub(crate) fn forget_alarm(&mut self) {
        self.alarm_at = self.alarm_at.map(|_| Moment::PAST);
    }
}
