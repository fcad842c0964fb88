//! The clock of the trays: cheap to read, and exact only where somebody looks at it.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use crate::rt;
use crate::sync::{AtomicBool, Ordering};

/// A moment, in nanoseconds since the clock's zero.
pub(crate) type Tick = u64;

/// Far enough in the past: a clock that somebody turns by hand may lie behind the one that was read first.
const BACK: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug)]
pub(crate) struct Clock {
    zero: Instant,
    /// The kernel's coarse clock at zero. It is a few milliseconds late at most, and costs a third of the other.
    coarse_zero: Option<u64>,
    /// Time is turned by hand, as in tests, or somebody is told how long things take.
    exact: AtomicBool,
}

impl Clock {
    pub(crate) fn new(exact: bool) -> Self {
        let now = rt::now();
        let back = now.checked_sub(BACK).map_or(Duration::ZERO, |_| BACK);
        let nanoseconds = u64::try_from(back.as_nanos()).unwrap_or_default();
        Self {
            zero: now - back,
            coarse_zero: coarse::zero().map(|zero| zero.wrapping_sub(nanoseconds)),
            exact: AtomicBool::new(exact),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> Tick {
        match self.coarse_zero {
            Some(zero) if !self.exact.load(Ordering::Relaxed) => coarse::now().wrapping_sub(zero),
            _ => self.tick(rt::now()),
        }
    }

    /// Looks whether time is turned by hand. From then on it is read exactly.
    pub(crate) fn doubt(&self) {
        if !rt::is_real_time() {
            self.exact.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn tick(&self, at: Instant) -> Tick {
        nanoseconds(at.saturating_duration_since(self.zero))
    }

    pub(crate) fn instant(&self, tick: Tick) -> Instant {
        self.zero + Duration::from_nanos(tick)
    }
}

/// As ticks. What is too long for them is for ever.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(cenote_model)))]
mod coarse {
    use rustix::time::{ClockId, Timespec, clock_gettime};

    /// Both clocks tell the same time; the exact one says when that is.
    pub(super) fn zero() -> Option<u64> {
        Some(nanoseconds(clock_gettime(ClockId::Monotonic)))
    }

    pub(super) fn now() -> u64 {
        nanoseconds(clock_gettime(ClockId::MonotonicCoarse))
    }

    fn nanoseconds(time: Timespec) -> u64 {
        (time.tv_sec as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(time.tv_nsec as u64)
    }
}

#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(cenote_model))))]
mod coarse {
    pub(super) fn zero() -> Option<u64> {
        None
    }

    pub(super) fn now() -> u64 {
        0
    }
}
