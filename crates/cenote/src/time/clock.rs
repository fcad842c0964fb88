//! The clock of a pool: coarse on trays, exact for callers that take the ledger's lock.
//!
//! A coarse reading costs 5 ns, an exact one 22 to 30. With exact readings a trip by tray would
//! take twice as long.

#[cfg(all(test, not(cenote_model)))]
mod tests;

use super::{Moment, kernel, now};
use crate::rt;
use crate::rt::sync::{AtomicU32, Ordering};

/// An observer is told how long leases are out, so trays are exact, too.
const OBSERVED: u32 = 1;

/// Tokio's clock was paused, as in tests: from then on only that clock is read.
const PAUSED: u32 = 2;

#[derive(Debug)]
pub(crate) struct Clock {
    /// Why no reading is coarse. In one number, because every trip asks twice.
    reasons: AtomicU32,
}

impl Clock {
    pub(crate) fn new(observed: bool) -> Self {
        let observed = if observed { OBSERVED } else { 0 };
        let paused = if rt::is_real_time() { 0 } else { PAUSED };
        Self {
            reasons: AtomicU32::new(observed | paused),
        }
    }

    /// The time, a few milliseconds late at most.
    // Inlined, because a call would be a tenth of the trip's instructions.
    #[inline(always)]
    pub(crate) fn coarse_now(&self) -> Moment {
        if cfg!(feature = "test-util") || self.reasons.load(Ordering::Relaxed) != 0 {
            self.exact_now_seldom()
        } else {
            kernel::coarse_now()
        }
    }

    /// The exact reading, apart from the trip.
    #[cold]
    #[inline(never)]
    fn exact_now_seldom(&self) -> Moment {
        self.exact_now()
    }

    /// There is an observer from now on, or none any more.
    pub(crate) fn set_observed(&self, observed: bool) {
        match observed {
            true => self.reasons.fetch_or(OBSERVED, Ordering::Relaxed),
            false => self.reasons.fetch_and(!OBSERVED, Ordering::Relaxed),
        };
    }

    #[inline]
    pub(crate) fn exact_now(&self) -> Moment {
        if cfg!(feature = "test-util") || self.is_paused() {
            now()
        } else {
            kernel::exact_now()
        }
    }

    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.reasons.load(Ordering::Relaxed) & PAUSED != 0
    }

    /// Looks whether tokio's clock is paused here. Returns whether that was not known.
    pub(crate) fn notice_pause(&self) -> bool {
        let is_news = !self.is_paused() && !rt::is_real_time();
        if is_news {
            self.reasons.fetch_or(PAUSED, Ordering::Relaxed);
        }
        is_news
    }
}
