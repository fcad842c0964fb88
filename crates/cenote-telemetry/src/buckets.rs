//! A histogram of times: a fixed array of counters, without a lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::watch::figures::BOUNDS;
use crate::watch::recorder::Distribution;

/// The bounds in nanoseconds, which are compared faster.
const NANOS: [u64; BOUNDS.len()] = {
    let mut nanos = [0; BOUNDS.len()];
    let mut index = 0;
    while index < BOUNDS.len() {
        nanos[index] = BOUNDS[index].as_nanos() as u64;
        index += 1;
    }
    nanos
};

#[derive(Debug, Default)]
pub(crate) struct Buckets {
    /// How many times were at most as long as the bound with this index, and longer than the one
    /// before it. The last one has no bound.
    counts: [AtomicU64; BOUNDS.len() + 1],
    /// The sum of all times, in nanoseconds: 584 years fit.
    total: AtomicU64,
}

impl Buckets {
    /// Returns for each bound how many times were at most as long, and how many times there are in
    /// all. Each counter is read once, so that no count is smaller than the one before it.
    pub(crate) fn cumulative(&self) -> [u64; BOUNDS.len() + 1] {
        let mut sum = 0;
        std::array::from_fn(|index| {
            sum += self.counts[index].load(Relaxed);
            sum
        })
    }

    /// Returns the sum of all times.
    pub(crate) fn total(&self) -> Duration {
        Duration::from_nanos(self.total.load(Relaxed))
    }
}

impl Distribution for Buckets {
    #[inline]
    fn record(&self, time: Duration) {
        // Most waits are zero.
        if time.is_zero() {
            self.counts[0].fetch_add(1, Relaxed);
            return;
        }
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let index = NANOS.partition_point(|bound| *bound < nanos);
        self.counts[index].fetch_add(1, Relaxed);
        self.total.fetch_add(nanos, Relaxed);
    }
}

#[cfg(test)]
mod tests;
