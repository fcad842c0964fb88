//! A moment: the time as a number, cheap to compare and to reckon with.

use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Nanoseconds, by the kernel's monotonic clock where there is one. What is too far away is for ever. Never zero, so that one that may be
/// missing takes no more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(NonZeroU64);

impl Moment {
    /// Is over, whatever the clock shows.
    pub(crate) const PAST: Self = Self(NonZeroU64::MIN);

    /// Never comes.
    pub(crate) const NEVER: Self = Self(NonZeroU64::MAX);

    #[inline]
    pub(crate) const fn from_nanoseconds(nanoseconds: u64) -> Self {
        match NonZeroU64::new(nanoseconds) {
            Some(nanoseconds) => Self(nanoseconds),
            None => Self(NonZeroU64::MIN),
        }
    }

    /// What lies before all time is its beginning.
    pub(crate) fn of(instant: Instant) -> Self {
        let Zero { instant: zero, at } = Zero::get();
        match instant.checked_duration_since(zero) {
            Some(after) => at + after,
            None => at - (zero - instant),
        }
    }

    pub(crate) fn instant(self) -> Instant {
        let Zero { instant: zero, at } = Zero::get();
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

    /// `None` is for ever.
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

/// What is too long is for ever.
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

/// Where the two ways to tell the time meet.
#[derive(Clone, Copy)]
struct Zero {
    instant: Instant,
    at: Moment,
}

impl Zero {
    fn get() -> Self {
        static ZERO: OnceLock<Zero> = OnceLock::new();
        *ZERO.get_or_init(|| {
            let (instant, at) = crate::rt::zero();
            Self { instant, at }
        })
    }
}

#[cfg(all(test, not(cenote_model)))]
mod tests {
    use std::ops::{AddAssign, SubAssign};

    use super::*;

    /// For tests that turn the clock.
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
        let now = crate::rt::now().instant();

        for instant in [now, now + DAY, now + 400 * DAY] {
            assert_eq!(Moment::of(instant).instant(), instant);
        }
        let later = now + Duration::from_nanos(7);
        assert_eq!(Moment::of(later).nanoseconds_since(Moment::of(now)), 7);
    }

    #[test]
    fn an_instant_of_the_past_comes_before_now() {
        let zero = Zero::get().instant;
        let now = Moment::of(zero + Duration::from_secs(1));

        let past = zero.checked_sub(Duration::from_millis(1));
        if let Some(past) = past {
            assert!(Moment::of(past) < now);
            assert_eq!(Moment::of(past).instant(), past);
        }
    }

    #[test]
    fn what_is_too_far_away_is_for_ever() {
        let now = crate::rt::now();

        assert_eq!(now + Duration::MAX, Moment::NEVER);
        assert_eq!(now.checked_add(Duration::MAX), None);
        assert_eq!(now.saturating_duration_since(Moment::NEVER), Duration::ZERO);
        assert_eq!(nanoseconds(Duration::from_micros(3)), 3000);
        assert_eq!(nanoseconds(Duration::MAX), u64::MAX);
    }
}
