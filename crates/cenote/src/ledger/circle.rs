//! The circle: every lease is held by somebody who waits in this line.
//!
//! Not a proof of a deadlock: a task may use one lease while it waits for another. But nearly always it is one.

use std::panic::Location;

use super::seat::Waiter;
use super::slot::{Asker, SlotNo, State};
use super::{Ledger, Resource};
use crate::config::Nested;
use crate::moment::Moment;
use crate::rt::Owner;
use crate::status::Holder;

/// Holders who all wait for this pool.
#[derive(Debug)]
pub(crate) struct Circle {
    /// Where the acquire was called that closed it.
    pub(crate) site: &'static Location<'static>,
    pub(crate) holders: Vec<Holder>,
}

/// Behind so many, nobody is looked at twice.
const LONG: usize = 16;

/// By slot: who had it, and that they are not among those who joined the line up to the one of this number.
pub(super) type NotInLine = Vec<(Option<Owner>, u64)>;

impl<R: Resource> Ledger<R> {
    /// Did one who has just joined the line close a circle? Only one who holds a lease can.
    pub(crate) fn closes_circle(&mut self, asker: Asker, now: Moment) -> Option<Box<Circle>> {
        let holds = self.held_by(asker.owner?).next().is_some();
        holds.then(|| self.circle(asker, now))?
    }

    /// The same for one who was just granted a lease while another of its acquires is still in line. Looked for only while few wait: behind
    /// a long line it would cost every grant, and the timeout error names the circle all the same.
    #[inline]
    pub(super) fn circle_closed_by_grant(
        &mut self,
        asker: Asker,
        now: Moment,
    ) -> Option<Box<Circle>> {
        if self.queue.is_empty() || self.queue.len() > self.max_size {
            return None;
        }
        let mut line = self.queue.line();
        let waits = asker.owner.is_some() && line.any(|waiter| waiter.asker.owner == asker.owner);
        drop(line);
        waits.then(|| self.circle(asker, now))?
    }

    #[cold]
    fn circle(&mut self, asker: Asker, now: Moment) -> Option<Box<Circle>> {
        self.is_circle().then(|| {
            Box::new(Circle {
                site: asker.site,
                holders: self.holders(now),
            })
        })
    }

    /// Is every lease held by somebody who waits in this line, and nothing else on its way?
    pub(super) fn is_circle(&mut self) -> bool {
        if self.limits.nested == Nested::Allow
            || self.queue.is_empty()
            || self.occupied() < self.max_size
        {
            return false;
        }
        (0..self.slots.len()).all(|slot| match self.slots[slot].state {
            State::Vacant => true,
            State::Leased => self.holder_waits(slot),
            _ => false,
        })
    }

    /// Does whoever holds this slot wait in line? Nearly always not.
    fn holder_waits(&mut self, slot: SlotNo) -> bool {
        let holder = self.slots[slot].asker.and_then(|asker| asker.owner);
        if holder.is_none() {
            return false;
        }
        if self.queue.len() < LONG {
            return self.queue.line().any(|waiter| waiter.asker.owner == holder);
        }
        let known = &mut self.not_in_line;
        if slot >= known.len() {
            known.resize(slot + 1, (None, 0));
        }
        let seen = match known[slot] {
            (owner, seen) if owner == holder => seen,
            _ => 0,
        };
        let is_holder = |waiter: &Waiter<R>| waiter.asker.owner == holder;
        let waits = self.queue.any_newcomer(seen, is_holder);
        if !waits {
            known[slot] = (holder, self.queue.last_serial());
        }
        waits
    }
}
