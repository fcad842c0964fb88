//! Entry: a caller asks for a resource, and is granted one, queued or refused. Also its later
//! polls, and its end.

use std::panic::Location;
use std::task::Waker;

use super::slot::{Asker, State};
use super::{BoxedError, Ledger, Mail, MailboxRef, Many, Orders, Resource, Ticket};
use crate::breaker::BreakerState;
use crate::config::Nested;
use crate::error::AcquireError;
use crate::status::RefusalReason;
use crate::time::Moment;

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Answer<R: Resource> {
    /// Served at once.
    Granted(R),
    /// Served at once, with a place.
    Placed,
    /// Queued. The outcome will be in the mailbox.
    Wait {
        ticket: Ticket,
        mailbox: MailboxRef<R>,
    },
    /// Not even queued.
    Refused(BoxedError<R>),
    /// Not queued, because the caller does not wait.
    NotNow,
}

/// What a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A resource.
    Lease,
    /// A resource that is opened, checked or cleaned, and none that other callers hold.
    Unqueued,
    /// A place, for a resource later.
    Place,
    /// The resource for its place.
    WithPlace,
}

/// When an acquire began, and when it must end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) since: Moment,
    pub(crate) deadline: Moment,
    /// It comes before all waiters: it has a place, or was granted a dead resource and asks again.
    pub(crate) again: bool,
    /// It was in the queue, or is.
    pub(crate) waited: bool,
    pub(crate) ask: Ask,
}

impl Begun {
    /// The ledger was not asked yet.
    pub(crate) const NOT_YET: Self = Self {
        since: Moment::PAST,
        deadline: Moment::PAST,
        again: false,
        waited: false,
        ask: Ask::Lease,
    };
}

impl<R: Resource> Ledger<R> {
    /// Returns whether a caller that asks now would be the first waiter.
    pub(crate) fn begins_queue(&self) -> bool {
        self.waiters.is_empty() && self.shelf.is_empty()
    }

    /// A caller asks for a resource. If it is queued, the ledger takes its waker. A caller without
    /// a waker does not wait.
    pub(crate) fn request(
        &mut self,
        asker: &Asker,
        waker: &mut Option<Waker>,
        begun: &Begun,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Answer<R> {
        if begun.ask == Ask::WithPlace {
            self.reserved -= 1;
        }
        let answer = match self.grant_at_once(asker, begun, now, orders) {
            Err(error) => Answer::Refused(error),
            Ok(None) if begun.ask == Ask::Place && self.reserve_place() => Answer::Placed,
            Ok(Some(resource)) => Answer::Granted(resource),
            Ok(None) if waker.is_none() => {
                self.prepare(now);
                Answer::NotNow
            }
            Ok(None) if !begun.again && self.is_queue_full(begun.ask) => {
                let pool = self.name.clone();
                let waiting = self.waiters.len();
                Answer::Refused(Box::new(AcquireError::Rejected { pool, waiting }))
            }
            Ok(None) => {
                if self.waiters.is_empty() {
                    self.queue_begins(now);
                }
                let (ticket, mailbox) = self.waiters.join(asker, waker.take(), begun);
                self.set_alarm(begun.deadline, now, orders);
                self.serve(now, orders);
                self.end(orders, now);
                return Answer::Wait { ticket, mailbox };
            }
        };
        if let Answer::Refused(error) = &answer {
            // A caller that never queues is told `None`, which is no refusal.
            let is_told = |reason: &RefusalReason| {
                begun.ask != Ask::Unqueued || *reason != RefusalReason::Rejected
            };
            self.count_refusal(error.refusal().filter(is_told));
            if begun.ask == Ask::WithPlace {
                // Its place is free.
                self.serve(now, orders);
            }
        }
        self.end(orders, now);
        answer
    }

    /// Begins the check of an idle resource that needs one, or an open if there is none, so that a
    /// later try can have it.
    fn prepare(&mut self, now: Moment) {
        if !self.waiters.is_empty() || self.allowance() == 0 {
            return;
        }
        match self.shelved(0) {
            Some(slot) => self.vet(slot, now),
            None if self.count(State::Opening) == 0 && self.may_refill(now) => {
                self.reserve(true, now);
            }
            None => {}
        }
    }

    fn grant_at_once(
        &mut self,
        asker: &Asker,
        begun: &Begun,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Result<Option<R>, BoxedError<R>> {
        if self.closed {
            let pool = self.name.clone();
            return Err(Box::new(AcquireError::Closed { pool }));
        }
        if self.breaker.state == BreakerState::Inactive {
            return Err(Box::new(self.unavailable(now)));
        }
        if let Some(held) = self.denied(asker) {
            let pool = self.name.clone();
            return Err(Box::new(AcquireError::Nested { pool, held }));
        }
        let must_queue = !self.waiters.is_empty() && !begun.again;
        if must_queue || begun.ask == Ask::Place || self.allowance() == 0 {
            return Ok(None);
        }
        let Some(slot) = self.pick(now) else {
            return Ok(None);
        };
        self.unserved_since = None;
        Ok(Some(self.lend(slot, asker, now, orders)))
    }

    fn denied(&self, asker: &Asker) -> Option<&'static Location<'static>> {
        if self.limits.nested != Nested::Deny {
            return None;
        }
        self.held_by(asker.owner?).next().map(|held| held.site)
    }

    /// Returns whether as many callers wait as may. Callers for which there is room, or will be, do
    /// not count: they wait for that, and not for a return.
    fn is_queue_full(&self, ask: Ask) -> bool {
        let most = match self.limits.max_waiters {
            _ if ask == Ask::Unqueued => 0,
            Some(most) => most,
            None => return false,
        };
        let vacant = self.max_size.saturating_sub(self.occupied());
        let prospects = vacant + self.occupied() - self.count(State::Leased);
        self.waiters.len() >= most.saturating_add(prospects.min(self.allowance()))
    }

    /// A waiter is polled: it leaves the waker of this poll, and looks for work that is held up.
    /// Returns whether it still waits; if not, the outcome is in its mailbox.
    pub(crate) fn look(
        &mut self,
        ticket: Ticket,
        waker: Waker,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> bool {
        let Some(waiter) = self.waiters.waiter(ticket) else {
            orders.drop_later(Some(Many::Spent(waker)));
            return false;
        };
        let deadline = waiter.deadline;
        let before = waiter.waker.replace(waker);
        orders.drop_later(before.map(Many::Spent));
        if deadline <= now {
            self.time_out(ticket, now, orders);
            self.serve(now, orders);
        } else {
            self.serve(now, orders);
            self.look_for_circle(ticket, now, orders);
            self.set_alarm(deadline, now, orders);
        }
        self.end(orders, now);
        self.waiters.waiter(ticket).is_some()
    }

    /// A waiter is dropped. The resource that was granted to it goes to the next.
    pub(crate) fn withdraw(
        &mut self,
        ticket: Ticket,
        mailbox: &MailboxRef<R>,
        now: Moment,
        orders: &mut Orders<R>,
    ) {
        if let Some(waiter) = self.waiters.take(ticket) {
            self.counts.cancelled += 1;
            self.wait_time += now.nanoseconds_since(waiter.since);
            orders.drop_later(waiter.waker.map(Many::Spent));
            self.gave_up_at = now;
            self.queue_is_shorter(now, orders);
            // It may have had a place, which is free now.
            self.serve(now, orders);
            self.end(orders, now);
            return;
        }
        // First of all, because the report of a timeout counts every resource, and one that is
        // taken back is between two states.
        self.time_out_first(now, orders);
        match mailbox.take() {
            Some(Mail::Grant(resource)) => {
                self.counts.cancelled += 1;
                let slot = self.take_back(resource, now);
                self.place(slot, now, orders);
            }
            Some(Mail::Place) => {
                self.counts.cancelled += 1;
                self.reserved -= 1;
                self.serve(now, orders);
            }
            // It was counted when it timed out.
            Some(mail @ Mail::TimedOut(..)) => orders.drop_later(Some(Many::Unread(mail))),
            Some(mail @ Mail::Refusal(_)) => {
                self.counts.cancelled += 1;
                orders.drop_later(Some(Many::Unread(mail)));
            }
            None => {}
        }
        self.end(orders, now);
    }
}
