//! A circle: a suspected deadlock. Every lease was taken by a task that now waits in this queue.
//!
//! It is not proven: a task may use one lease while it waits for another, and a lease may have been
//! moved to another task. Circles are looked for once a second and at timeouts.

use std::collections::HashSet;
use std::panic::Location;
use std::sync::Arc;

use super::slot::State;
use super::{HELD_UP_AFTER, Ledger, Orders, Resource, Ticket};
use crate::config::Nested;
use crate::rt::sync::{AtomicBool, Ordering};
use crate::status::Holder;
use crate::time::Moment;

/// Holders that all wait for this pool.
#[derive(Debug)]
pub(crate) struct Circle {
    /// The call site of a waiter that belongs to it.
    pub(crate) site: &'static Location<'static>,
    pub(crate) holders: Vec<Holder>,
}

/// The circle that was found last.
#[derive(Debug)]
pub(super) struct Found {
    /// How many leases had come back by then.
    released: u64,
    /// Set by the caller that raises the event.
    told: Arc<AtomicBool>,
}

impl<R: Resource> Ledger<R> {
    /// Looks for a circle on behalf of a waiter that has waited for a while.
    pub(super) fn look_for_circle(&mut self, ticket: Ticket, now: Moment, orders: &mut Orders<R>) {
        let Some(waiter) = self.waiters.waiter(ticket) else {
            return;
        };
        let (site, since) = (waiter.asker.site, waiter.since);
        let is_early = now.saturating_duration_since(since) < HELD_UP_AFTER;
        if is_early || !self.is_circle() {
            return;
        }
        if !self.found_circle().swap(true, Ordering::AcqRel) {
            let holders = self.holders(now);
            orders.rest().circle = Some(Circle { site, holders });
        }
    }

    /// Returns whether the event was raised about the circle of this moment, if there is one. For
    /// the report of a timeout.
    pub(super) fn circle_at_timeout(&mut self) -> Option<Arc<AtomicBool>> {
        self.is_circle().then(|| self.found_circle())
    }

    /// Returns whether the circle that was found last still stands.
    pub(super) fn is_in_circle(&self) -> bool {
        let found = self.circle.as_ref();
        found.is_some_and(|found| found.released == self.released()) && !self.waiters.is_empty()
    }

    /// A circle lasts until a lease comes back.
    fn found_circle(&mut self) -> Arc<AtomicBool> {
        let released = self.released();
        let known = self
            .circle
            .take()
            .filter(|found| found.released == released);
        let found = known.unwrap_or_else(|| Found {
            released,
            told: Arc::new(AtomicBool::new(false)),
        });
        Arc::clone(&self.circle.insert(found).told)
    }

    /// Returns whether every lease was taken by a task that waits in this queue, and nothing else
    /// is on its way.
    fn is_circle(&self) -> bool {
        if self.limits.nested == Nested::Allow
            || self.waiters.is_empty()
            || self.count(State::Leased) != self.occupied()
            || self.occupied() < self.max_size
        {
            return false;
        }
        let holders = self.slots.iter().filter(|slot| slot.state == State::Leased);
        // A waiter that has not taken its grant yet will take it when it is polled.
        let mut holders = holders.map(|slot| {
            let asker = slot.asker.filter(|_| !slot.is_unclaimed());
            asker.and_then(|asker| asker.owner)
        });
        let owners = || self.waiters.line().filter_map(|waiter| waiter.asker.owner);
        // Nearly always the first holder does not wait, which is found without a set.
        let Some(first) = holders.next().flatten() else {
            return false;
        };
        if !owners().any(|owner| owner == first) {
            return false;
        }
        let waiting: HashSet<_> = owners().collect();
        holders.all(|holder| holder.is_some_and(|holder| waiting.contains(&holder)))
    }
}
