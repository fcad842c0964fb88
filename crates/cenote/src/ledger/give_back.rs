//! Entry: a lease ends. Its resource goes to the next waiter, to the shelf, or out of service.

use std::mem;

use super::slot::{SlotNo, State};
use super::{Job, Ledger, Orders, Resource, Work};
use crate::status::CloseReason;
use crate::time::Moment;

/// The condition of a resource that comes back, judged by the shell before it takes the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Good,
    /// Something asynchronous must be done before the next user gets it: cleaning, or only a check
    /// or a hook.
    Dirty {
        clean: bool,
    },
    Broken,
    Discarded,
    /// Found broken when it was about to be lent: no holder ever had it.
    Dead,
    /// The runtime that it was opened on is gone: no holder ever had it, and it must be checked.
    Stranded,
    /// It works, and its manager wants it closed.
    Spent {
        held: bool,
    },
}

impl Condition {
    /// Returns whether a holder had the resource.
    pub(crate) fn was_held(self) -> bool {
        !matches!(
            self,
            Self::Dead | Self::Stranded | Self::Spent { held: false }
        )
    }

    fn is_bad(self) -> bool {
        matches!(self, Self::Broken | Self::Dead)
    }
}

/// Which side does the work that a return makes necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The pool, later.
    Dropped,
    /// The caller that returns the lease, now.
    Awaited,
}

/// A lease that came back.
#[derive(Debug)]
pub(crate) struct Returned<R> {
    /// When it was granted.
    pub(crate) since: Moment,
    /// It had been reported as leaked.
    pub(crate) late: bool,
    /// It was lent while the breaker recovered.
    pub(crate) probe: bool,
    /// It was closed because it is broken, and for no other reason.
    pub(crate) refused: bool,
    /// The work that the caller has to do, if that was the manner. In a box, because most leases
    /// leave none.
    pub(crate) work: Option<Box<Work<R>>>,
}

impl<R: Resource> Ledger<R> {
    /// A lease comes back.
    pub(crate) fn give_back(
        &mut self,
        slot: SlotNo,
        resource: R,
        condition: Condition,
        manner: Manner,
        now: Moment,
        orders: &mut Orders<R>,
    ) -> Returned<R> {
        let entry = &mut self.slots[slot];
        let since = entry.since;
        let late = entry.overdue;
        entry.asker = None;
        entry.label = None;
        let probe = mem::take(&mut entry.probe);
        if condition.was_held() {
            entry.used_at = now;
            self.held_time += now.nanoseconds_since(since);
        } else {
            entry.uses -= 1;
            self.lent -= 1;
        }
        if condition == Condition::Discarded {
            self.counts.discarded += 1;
        }

        let worn = self.worn(slot, now);
        let unfit = match condition {
            _ if self.closed => Some(CloseReason::PoolClosed),
            _ if worn == Some(CloseReason::Invalidated) => worn,
            Condition::Discarded => Some(CloseReason::Discarded),
            Condition::Spent { .. } => Some(CloseReason::Refused),
            Condition::Broken | Condition::Dead => Some(CloseReason::Broken),
            Condition::Good | Condition::Dirty { .. } | Condition::Stranded => worn,
        };
        let mut returned = Returned {
            since,
            late,
            probe,
            refused: unfit == Some(CloseReason::Broken),
            work: None,
        };
        if unfit.is_none() && condition == Condition::Good {
            self.slots[slot].resource = Some(resource);
            self.pass_on(slot, now, orders);
            self.end(orders, now);
            return returned;
        }
        let job = match (unfit, condition) {
            (Some(reason), _) => Some(self.closing(slot, resource, reason, now)),
            (None, Condition::Dirty { clean }) => {
                self.become_state(slot, State::Cleaning, now);
                Some(Job::Clean {
                    resource,
                    clean,
                    probe,
                })
            }
            // Stranded.
            (None, _) => {
                self.slots[slot].resource = Some(resource);
                self.examine(slot, true, self.asks, now);
                None
            }
        };
        if condition.is_bad() {
            self.found_dead(now);
        }
        // It may have been a probe: the next one can go.
        self.serve(now, orders);
        let work = job.map(|job| Work { slot, job });
        match manner {
            Manner::Dropped => self.owed.extend(work),
            Manner::Awaited => returned.work = work.map(Box::new),
        }
        self.end(orders, now);
        returned
    }

    /// A lease leaves the pool together with its resource.
    pub(crate) fn detach(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) {
        let entry = &mut self.slots[slot];
        entry.probe = false;
        entry.asker = None;
        entry.label = None;
        entry.used_at = now;
        self.counts.detached += 1;
        self.vacate(slot, now, orders);
        self.end(orders, now);
    }

    /// The slot of a lease is kept for long, with or without its resource. Returns whether it was
    /// lent while the breaker recovered.
    pub(crate) fn keep(&mut self, slot: SlotNo, now: Moment, orders: &mut Orders<R>) -> bool {
        let entry = &mut self.slots[slot];
        let probe = mem::take(&mut entry.probe);
        entry.kept = true;
        if let Some(asker) = &mut entry.asker {
            asker.owner = None;
        }
        // It may have been a probe: the next one can go.
        self.serve(now, orders);
        self.end(orders, now);
        probe
    }
}
