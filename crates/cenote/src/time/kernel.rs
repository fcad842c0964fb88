//! The kernel's monotonic clock: exact, or coarse at a quarter of the price. Other systems, and
//! models, read the clock of the runtime instead.

use std::time::Instant;

use super::Moment;

#[cfg(all(any(target_os = "linux", target_os = "android"), not(cenote_model)))]
mod clock {
    use rustix::time::{ClockId, clock_gettime};

    use crate::time::Moment;

    #[inline]
    pub(in crate::time) fn exact_now() -> Moment {
        read(ClockId::Monotonic)
    }

    #[inline]
    pub(in crate::time) fn coarse_now() -> Moment {
        read(ClockId::MonotonicCoarse)
    }

    pub(super) fn start() -> Moment {
        exact_now()
    }

    #[inline]
    fn read(clock: ClockId) -> Moment {
        let time = clock_gettime(clock);
        let seconds = (time.tv_sec as u64).wrapping_mul(1_000_000_000);
        Moment::from_nanoseconds(seconds.wrapping_add(time.tv_nsec as u64))
    }
}

#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(cenote_model))))]
mod clock {
    use crate::time::Moment;

    pub(in crate::time) use crate::time::{now as coarse_now, now as exact_now};

    /// A day after the beginning, so that an instant before the first reading can be a moment, too.
    pub(super) fn start() -> Moment {
        Moment::from_nanoseconds(24 * 60 * 60 * 1_000_000_000)
    }
}

pub(super) use clock::{coarse_now, exact_now};

/// An instant and the moment that equals it.
#[expect(clippy::disallowed_methods, reason = "the real time, for once")]
pub(super) fn zero() -> (Instant, Moment) {
    let both = || {
        let before = clock::start();
        // In this order, so that the coarse clock is never ahead.
        let instant = Instant::now();
        let at = clock::start();
        (at.nanoseconds_since(before), instant, at)
    };
    // A thread may be interrupted between two readings, so the closest pair counts.
    let tries = (0..8).map(|_| both());
    let best = tries.min_by_key(|(took, ..)| *took);
    let (_, instant, at) = best.expect("bug: eight are some");
    (instant, at)
}
