//! Jittered exponential back-off: how long to wait after the n-th failure in a row.

use std::time::Duration;

use fastrand::Rng;

/// Doubles from `first` to `longest`; each delay is drawn from its upper half, so that many clients
/// do not come back together.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures: 0,
        }
    }

    /// The delay after one more failure.
    pub(crate) fn next(&mut self, rng: &mut Rng) -> Duration {
        let doubled = self
            .first
            .saturating_mul(1u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1);
        let delay = doubled.min(self.longest);
        delay - (delay / 2).mul_f64(rng.f64())
    }

    /// Another delay after the same failure.
    pub(crate) fn again(&self, rng: &mut Rng) -> Duration {
        let mut same = self.clone();
        same.failures = same.failures.saturating_sub(1);
        same.next(rng)
    }

    /// A success: the next failure is the first again.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}
