//! A moment: the time as a number, which is cheap to compare and to add to.

use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Nanoseconds, by the kernel's monotonic clock where there is one. Sums saturate at `NEVER`. Never
/// zero, so that an `Option` of it takes no more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(NonZeroU64);

impl Moment {
    /// Before every other moment.
    pub(crate) const PAST: Self = Self(NonZeroU64::MIN);

    /// After every other moment.
    pub(crate) const NEVER: Self = Self(NonZeroU64::MAX);

    #[inline]
    pub(crate) const fn from_nanoseconds(nanoseconds: u64) -> Self {
        match NonZeroU64::new(nanoseconds) {
            Some(nanoseconds) => Self(nanoseconds),
            None => Self(NonZeroU64::MIN),
        }
    }

    /// An instant before the first moment becomes the first moment.
    pub(crate) fn of(instant: Instant) -> Self {
        let (zero, at) = zero();
        match instant.checked_duration_since(zero) {
            Some(after) => at + after,
            None => at - (zero - instant),
        }
    }

    pub(crate) fn instant(self) -> Instant {
        let (zero, at) = zero();
        if self >= at {
            zero + self.saturating_duration_since(at)
        } else {
            zero.checked_sub(at.saturating_duration_since(self))
                .unwrap_or(zero)
        }
    }

    #[inline]
    pub(crate) fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanoseconds_since(earlier))
    }

    #[inline]
    pub(crate) fn nanoseconds_since(self, earlier: Self) -> u64 {
        self.0.get().saturating_sub(earlier.0.get())
    }

    /// Returns `None` for a moment that never comes.
    pub(crate) fn checked_add(self, duration: Duration) -> Option<Self> {
        let sum = self + duration;
        (sum < Self::NEVER).then_some(sum)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    #[inline]
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(duration)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self::from_nanoseconds(self.0.get().saturating_sub(nanoseconds(duration)))
    }
}

/// Saturates.
#[inline]
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let (seconds, rest) = (duration.as_secs(), duration.subsec_nanos());
    if seconds < u64::MAX / SECOND {
        seconds * SECOND + u64::from(rest)
    } else {
        u64::MAX
    }
}

/// An instant and the moment that equals it.
fn zero() -> (Instant, Moment) {
    static ZERO: OnceLock<(Instant, Moment)> = OnceLock::new();
    *ZERO.get_or_init(super::kernel::zero)
}

#[cfg(all(test, not(cenote_model)))]
mod tests {
    use std::ops::{AddAssign, SubAssign};

    use super::*;

    /// For tests that move the clock.
    impl AddAssign<Duration> for Moment {
        fn add_assign(&mut self, duration: Duration) {
            *self = *self + duration;
        }
    }

    impl SubAssign<Duration> for Moment {
        fn sub_assign(&mut self, duration: Duration) {
            *self = *self - duration;
        }
    }

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn an_instant_becomes_a_moment_and_the_same_instant_again() {
        let now = crate::time::now().instant();

        for instant in [now, now + DAY, now + 400 * DAY] {
            assert_eq!(Moment::of(instant).instant(), instant);
        }
        let later = now + Duration::from_nanos(7);
        assert_eq!(Moment::of(later).nanoseconds_since(Moment::of(now)), 7);
    }

    #[test]
    fn an_instant_of_the_past_comes_before_now() {
        let zero = zero().0;
        let now = Moment::of(zero + Duration::from_secs(1));

        let past = zero.checked_sub(Duration::from_millis(1));
        if let Some(past) = past {
            assert!(Moment::of(past) < now);
            assert_eq!(Moment::of(past).instant(), past);
        }
    }

    #[test]
    fn what_is_too_far_away_is_for_ever() {
        let now = crate::time::now();

        assert_eq!(now + Duration::MAX, Moment::NEVER);
        assert_eq!(now.checked_add(Duration::MAX), None);
        assert_eq!(now.saturating_duration_since(Moment::NEVER), Duration::ZERO);
        assert_eq!(nanoseconds(Duration::from_micros(3)), 3000);
        assert_eq!(nanoseconds(Duration::MAX), u64::MAX);
    }
}
