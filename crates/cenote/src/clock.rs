//! The clock of a pool: cheap to read, and exact only where somebody looks at it.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::moment::Moment;
use crate::rt;
use crate::sync::{AtomicBool, Ordering};
use crate::tick;

/// How late the cheap clock is at most: what is reckoned by it must not end early.
const LAG: Duration = Duration::from_millis(10);

/// A wait that is shorter than this is reckoned exactly.
const SHORT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Clock {
    /// Somebody is told how long things take, or time is turned by hand.
    exact: AtomicBool,
    /// Time is turned by hand, as in tests.
    turned: AtomicBool,
}

impl Clock {
    pub(crate) fn new(exact: bool) -> Self {
        let turned = !rt::is_real_time();
        Self {
            exact: AtomicBool::new(exact || turned),
            turned: AtomicBool::new(turned),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> Moment {
        if self.is_exact() {
            rt::now()
        } else {
            rt::nearly_now()
        }
    }

    /// The same for those who ask very often: cheaper still, and a little later on a machine that has no time for anything.
    #[inline]
    pub(crate) fn glance(&self) -> Moment {
        if self.is_exact() {
            rt::now()
        } else {
            tick::nearly_now()
        }
    }

    /// The end of `limit`, which begins `now`.
    #[inline]
    pub(crate) fn end_of(&self, limit: Duration, now: Moment) -> Moment {
        if self.is_exact() {
            now + limit
        } else if limit < SHORT {
            rt::truly_now() + limit
        } else {
            now + limit + LAG
        }
    }

    /// Is this moment over, where the clock shows `shown`? Then the time, exactly.
    #[inline]
    pub(crate) fn past(&self, at: Moment, shown: Moment) -> Option<Moment> {
        let now = match self.is_exact() {
            true => shown,
            false if at <= shown + 2 * LAG => rt::truly_now(),
            false => return None,
        };
        (at <= now).then_some(now)
    }

    #[inline]
    fn is_exact(&self) -> bool {
        self.exact.load(Ordering::Relaxed)
    }

    /// Is time turned by hand, as far as we know?
    #[inline]
    pub(crate) fn is_turned(&self) -> bool {
        self.turned.load(Ordering::Relaxed)
    }

    /// Looks whether time is turned by hand. From then on it is read exactly. Answers with whether that is news.
    pub(crate) fn doubt(&self) -> bool {
        let found_out = !self.is_turned() && !rt::is_real_time();
        if found_out {
            self.turned.store(true, Ordering::Relaxed);
            self.exact.store(true, Ordering::Relaxed);
        }
        found_out
    }
}
