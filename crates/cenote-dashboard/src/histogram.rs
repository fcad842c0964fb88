//! A histogram of times: a fixed array of counters, without a lock. The difference of two readings
//! has the percentiles of the time between them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Each power of two is divided into this many buckets, so a percentile is right to a sixteenth.
const PARTS: usize = 8;

/// Two to this power is a day in microseconds. Longer times count as a day.
const LONGEST: usize = 37;

/// The first powers have a bucket for each number.
const BUCKETS: usize = PARTS + (LONGEST - PARTS.trailing_zeros() as usize) * PARTS;

#[derive(Debug)]
pub(crate) struct Histogram([AtomicU64; BUCKETS]);

/// The counters at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Reading(Box<[u64; BUCKETS]>);

/// The times within which half, 95 % and 99 % of all operations were done, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }
}

impl Histogram {
    pub(crate) fn record(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0[bucket(micros)].fetch_add(1, Relaxed);
    }

    pub(crate) fn read(&self) -> Reading {
        let mut counts = Box::new([0; BUCKETS]);
        for (count, now) in counts.iter_mut().zip(&self.0) {
            *count = now.load(Relaxed);
        }
        Reading(counts)
    }
}

impl Reading {
    /// Returns the percentiles of the times since `before`. There are none if nothing was recorded.
    pub(crate) fn since(&self, before: &Self) -> Option<Percentiles> {
        let new = |index: usize| self.0[index].saturating_sub(before.0[index]);
        let total: u64 = (0..BUCKETS).map(new).sum();
        let within = |percent: u64| {
            // The rank is rounded up, so that one time is its own 99th percentile.
            let rank = (total * percent).div_ceil(100).max(1);
            let mut seen = 0;
            let found = (0..BUCKETS).find(|&index| {
                seen += new(index);
                seen >= rank
            });
            millis(found.unwrap_or(BUCKETS - 1))
        };
        (total > 0).then(|| Percentiles {
            p50: within(50),
            p95: within(95),
            p99: within(99),
        })
    }
}

fn bucket(micros: u64) -> usize {
    let parts = PARTS as u64;
    if micros < parts {
        return micros as usize;
    }
    let power = 63 - micros.leading_zeros() as usize;
    let shift = power - PARTS.trailing_zeros() as usize;
    let part = (micros >> shift) as usize - PARTS;
    ((shift + 1) * PARTS + part).min(BUCKETS - 1)
}

/// Returns the middle of a bucket.
fn millis(bucket: usize) -> f64 {
    let micros = match bucket.checked_sub(PARTS) {
        None => bucket as f64,
        Some(rest) => {
            let width = (1_u64 << (rest / PARTS)) as f64;
            (rest % PARTS + PARTS) as f64 * width + (width - 1.0) / 2.0
        }
    };
    micros / 1e3
}

#[cfg(test)]
mod tests;
