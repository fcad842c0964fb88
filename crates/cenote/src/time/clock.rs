//! The clock of a pool: coarse on trays, exact for callers that take the ledger's lock.
//!
//! A coarse reading costs 5 ns, an exact one 22 to 30. With exact readings a trip by tray would
//! take twice as long.

#[cfg(all(test, not(cenote_model)))]
mod tests;

use super::{Moment, kernel, now};
use crate::rt;
use crate::rt::sync::{AtomicBool, Ordering};

#[derive(Debug)]
pub(crate) struct Clock {
    /// An observer is told how long leases are out, so trays are exact, too.
    observed: AtomicBool,
    /// Tokio's clock was paused, as in tests: from then on only that clock is read.
    paused: AtomicBool,
}

impl Clock {
    pub(crate) fn new(observed: bool) -> Self {
        Self {
            observed: AtomicBool::new(observed),
            paused: AtomicBool::new(!rt::is_real_time()),
        }
    }

    /// The time, a few milliseconds late at most.
    #[inline]
    pub(crate) fn coarse_now(&self) -> Moment {
        let exact = cfg!(feature = "test-util") || self.observed.load(Ordering::Relaxed);
        if exact || self.is_paused() {
            self.exact_now()
        } else {
            kernel::coarse_now()
        }
    }

    /// There is an observer from now on, or none any more.
    pub(crate) fn set_observed(&self, observed: bool) {
        self.observed.store(observed, Ordering::Relaxed);
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
        self.paused.load(Ordering::Relaxed)
    }

    /// Looks whether tokio's clock is paused here. Returns whether that was not known.
    pub(crate) fn notice_pause(&self) -> bool {
        let is_news = !self.is_paused() && !rt::is_real_time();
        if is_news {
            self.paused.store(true, Ordering::Relaxed);
        }
        is_news
    }
}
