//! Reserved places: the right to a resource later, without holding one yet.
//!
//! A reserved place counts against `max_size` like a lease. So a caller that has one waits for an
//! open or a check at most, and never for another caller.

use std::mem;

use super::{Ledger, Mail, MailboxRef, Many, Orders, Resource};
use crate::time::Moment;

/// A place that was granted to a waiter, which may not have claimed it yet.
#[derive(Debug)]
pub(super) struct Placed<R: Resource> {
    pub(super) mailbox: MailboxRef<R>,
    /// The deadline of the waiter.
    pub(super) deadline: Moment,
}

impl<R: Resource> Ledger<R> {
    /// How many resources may be lent beside the reserved places. Without any there is no limit:
    /// there are never more resources than `max_size`.
    #[inline]
    pub(super) fn places(&self) -> usize {
        match self.reserved {
            0 => usize::MAX,
            _ => self.free_places(),
        }
    }

    fn free_places(&self) -> usize {
        self.max_size.saturating_sub(self.in_use() + self.reserved)
    }

    /// Reserves a place for a caller, unless the waiters ahead of it need all that are left.
    pub(super) fn reserve_place(&mut self) -> bool {
        let may = self.allowance() > 0 && self.free_places() > self.waiters.len();
        self.reserved += usize::from(may);
        may
    }

    /// Gives places to the first waiters, if that is all they want.
    #[inline]
    pub(super) fn grant_places(&mut self, now: Moment, orders: &mut Orders<R>) {
        if self.waiters.wants_place() {
            self.grant_free_places(now, orders);
        }
    }

    /// A waiter whose deadline has passed gets none: it is about to time out.
    #[cold]
    fn grant_free_places(&mut self, now: Moment, orders: &mut Orders<R>) {
        while self.waiters.wants_place() && self.allowance() > 0 && self.free_places() > 0 {
            let first = self.waiters.first();
            let deadline = first.map_or(now, |first| first.deadline);
            if deadline <= now {
                return;
            }
            let Some(waiter) = self.waiters.take_first() else {
                return;
            };
            self.reserved += 1;
            self.wait_time += now.nanoseconds_since(waiter.since);
            waiter.mailbox.deliver(Mail::Place);
            orders.wake_waiter(waiter.waker);
            self.unclaimed_until = self.unclaimed_until.min(deadline);
            self.placed.retain(|placed| placed.mailbox.has_place());
            self.placed.push(Placed {
                mailbox: waiter.mailbox,
                deadline,
            });
            self.unserved_since = None;
        }
    }

    /// Takes back the places that `is_over` says so about, unless their waiters have claimed them.
    pub(super) fn revoke_places(
        &mut self,
        is_over: impl Fn(&Placed<R>) -> bool,
        mut mail: impl FnMut(&mut Self) -> Mail<R>,
        orders: &mut Orders<R>,
    ) {
        let (over, left) = mem::take(&mut self.placed).into_iter().partition(is_over);
        self.placed = left;
        for placed in over {
            let mail = mail(self);
            let reason = mail.refusal();
            match placed.mailbox.revoke_place(mail) {
                Ok(()) => {
                    self.reserved -= 1;
                    self.count_refusal(reason);
                }
                // The waiter was quicker.
                Err(mail) => orders.drop_later(Some(Many::Unread(mail))),
            }
        }
    }

    /// A reserved place is given up.
    pub(crate) fn unreserve(&mut self, now: Moment, orders: &mut Orders<R>) {
        self.reserved -= 1;
        self.serve(now, orders);
        self.queue_is_shorter(now, orders);
        self.end(orders, now);
    }
}
