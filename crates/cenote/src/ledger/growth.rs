//! Growth: when another resource is opened for the waiters, and when opens are put off.
//!
//! An open helps only if the queue still stands when the open is done. So the pool begins with few
//! opens and looks at the queue: if it stands for as long as an open takes, or will at the pace of
//! the returns, returns alone do not serve it, and `max_opening` opens may run.
//!
//! While opens fail, three kinds of callers are put off. The tries of one round of `Retry` rest
//! until `retry_at`. Waiters of a pool with leases out rest a second at most, because a return may
//! serve them. Refills rest longest, because no caller waits for them.

use std::time::Duration;

use super::slot::State;
use super::{HELD_UP_AFTER, Ledger, Resource};
use crate::time::{Backoff, Moment, nanoseconds};

/// So many opens may always run, so that a slow one does not stop growth.
const FEW: usize = 2;

/// The first delay between two tries of an open, and the longest: quick enough for a server that
/// restarts, slow enough for one that is down for the night.
const RETRY: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));
const REFILL: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));

/// What is known about the queue, and about opens.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Since when the queue stands although resources may come back to it, and how many had come
    /// back by then.
    standing: Option<(Moment, u64)>,
    /// How long the last open took, in nanoseconds.
    open_took: u64,
}

/// Opens fail: since when, and until when the next tries are put off.
#[derive(Debug)]
pub(super) struct Failing {
    pub(super) since: Moment,
    retry: Backoff,
    /// When the next round of tries begins.
    retry_at: Moment,
    /// When an open may be tried for a waiter to which a lease may come back.
    waiters_at: Moment,
    refill: Backoff,
    pub(super) refill_at: Moment,
}

impl<R: Resource> Ledger<R> {
    /// The first waiter is about to be queued.
    pub(super) fn queue_begins(&mut self, now: Moment) {
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

    /// Returns whether one more resource may be opened for the waiters. Opens that are held up do
    /// not count, so that they block no waiter.
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

    /// How many opens may run at first: each living resource will come back, and stands for one.
    pub(super) fn opens_at_first(&self) -> usize {
        let most = self.limits.max_opening;
        most.saturating_sub(self.alive()).max(FEW.min(most))
    }

    /// Returns whether returns alone will not serve the queue before an open is done.
    fn is_pressed(&self, now: Moment) -> bool {
        let Some((since, released)) = self.pace.standing else {
            return true;
        };
        let stood = now.saturating_duration_since(since);
        // Each lease counts as if it came back now, so that the pace is not underrated before the
        // first return.
        let returns = self.released().saturating_sub(released) + self.alive() as u64;
        let expected = stood.as_nanos() * self.waiters.len() as u128;
        let took = u128::from(self.pace.open_took);
        stood.as_nanos() >= took || expected >= took * u128::from(returns)
    }

    /// How many resources are open, whatever is done with them.
    pub(super) fn alive(&self) -> usize {
        self.total() - self.count(State::Opening)
    }

    /// Until when a backend that refuses is left alone although waiters are queued: returns serve
    /// them, instead of one waiter after another being failed.
    pub(super) fn refused_until(&self, now: Moment) -> Option<Moment> {
        self.put_off_until(now).filter(|_| self.alive() > 0)
    }

    /// Until when opens are put off because one has just failed: a second at most.
    pub(super) fn put_off_until(&self, now: Moment) -> Option<Moment> {
        let until = self.failing.as_ref().map(|failing| failing.waiters_at);
        until.filter(|until| *until > now)
    }

    /// An open has failed: puts off the next tries. Returns for how long this one rests. Failures
    /// of one round count once.
    pub(super) fn back_off(&mut self, now: Moment) -> Duration {
        let failing = self.failing.get_or_insert_with(|| {
            Box::new(Failing {
                since: now,
                retry: RETRY,
                retry_at: now,
                waiters_at: now,
                refill: REFILL,
                refill_at: now,
            })
        });
        if failing.refill_at <= now {
            failing.refill_at = now + failing.refill.next(&mut self.rng);
        }
        let delay = if failing.retry_at <= now {
            let delay = failing.retry.next(&mut self.rng);
            failing.retry_at = now + delay;
            delay
        } else {
            // No try begins before the round is over.
            let left = failing.retry_at.saturating_duration_since(now);
            failing.retry.again(&mut self.rng).max(left)
        };
        failing.waiters_at = now + delay.min(HELD_UP_AFTER);
        delay
    }
}
