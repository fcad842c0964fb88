//! Growth: how many opens may run at once for the waiters, beside the resources that are there already.
//!
//! An open helps only if the line still stands when it is done. So the pool begins with few, and looks at the line: one that stands
//! for as long as an open takes, or that will at the pace of the returns, is not served by them, and `max_opening` may run.

use std::time::Duration;

use super::slot::State;
use super::{Ledger, Resource};
use crate::moment::{Moment, nanoseconds};

/// So many opens may always run, so that a slow one does not stop growth.
const FEW: usize = 2;

/// What is known about the line that stands, and about opens.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Since when the line stands although there is something to come back to it, and how much had come back by then.
    standing: Option<(Moment, u64)>,
    /// How long the last open took, in nanoseconds.
    open_took: u64,
}

impl<R: Resource> Ledger<R> {
    /// The first waiter is about to be queued.
    pub(super) fn line_begins(&mut self, now: Moment) {
        self.pace.standing = None;
        self.looked_at = now;
        if !self.is_wanted(now) {
            self.unserved_since = None;
        }
        self.unserved_since.get_or_insert(now);
    }

    pub(super) fn open_took(&mut self, took: Duration) {
        self.pace.open_took = nanoseconds(took);
    }

    /// Returns whether one more may be opened for the waiters. Opens that are held up do not count, so that they block no waiter.
    pub(super) fn may_grow(&mut self, now: Moment) -> bool {
        if self.pace.standing.is_none() && self.alive() > 0 {
            self.pace.standing = Some((now, self.released()));
        }
        let most = if self.is_pressed(now) {
            self.limits.max_opening
        } else {
            self.opens_at_first()
        };
        self.has_room(now) && self.opening(now) < most && self.refused_until(now).is_none()
    }

    /// Until when the backend is left alone, if it refuses while there is something to come back: returns serve the line then, instead of
    /// one caller after another being failed. Not for long, for what is out may be out for long.
    pub(super) fn refused_until(&self, now: Moment) -> Option<Moment> {
        let until = self.failing.as_ref().map(|failing| failing.line_at)?;
        (until > now && self.alive() > 0).then_some(until)
    }

    /// How many opens a line begins with: each resource that is there will come back, and stands for one of them.
    pub(super) fn opens_at_first(&self) -> usize {
        let most = self.limits.max_opening;
        most.saturating_sub(self.alive()).max(FEW.min(most))
    }

    /// Will the line not be served by returns before an open is done?
    fn is_pressed(&self, now: Moment) -> bool {
        let Some((since, released)) = self.pace.standing else {
            return true;
        };
        let stood = now.saturating_duration_since(since);
        // What is out counts as if it came back now, so that the pace is not underrated before the first return.
        let returns = self.released().saturating_sub(released) + self.alive() as u64;
        let expected = stood.as_nanos() * self.waiters.len() as u128;
        let took = u128::from(self.pace.open_took);
        stood.as_nanos() >= took || expected >= took * u128::from(returns)
    }

    /// Resources that are here, whatever is done with them.
    pub(super) fn alive(&self) -> usize {
        self.total() - self.count(State::Opening)
    }
}
