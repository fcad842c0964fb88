//! A limit on the lines of one kind, so that a storm does not fill the disk.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::time::Moment;

/// How many lines are written in each second. The seconds are those of the clock, so twice as many
/// fit into a second that begins in the middle.
pub(super) const MOST: u64 = 5;

const SECOND: u64 = 1_000_000_000;

/// The bits of `window` that count lines.
const COUNT_BITS: u32 = 8;

#[derive(Debug, Default)]
pub(super) struct Limit {
    /// The present second, and how many lines were written in it.
    window: AtomicU64,
    suppressed: AtomicU64,
}

impl Limit {
    /// Returns how many lines were suppressed since the last one, if a line may be written now.
    /// If not, it counts as suppressed.
    pub(super) fn pass(&self, now: Moment) -> Option<Suppressed> {
        let second = second(now);
        let next = |window: u64| match window >> COUNT_BITS {
            last if last < second => Some(second << COUNT_BITS | 1),
            _ => (window & ((1 << COUNT_BITS) - 1) < MOST).then_some(window + 1),
        };
        match self.window.fetch_update(Relaxed, Relaxed, next) {
            Ok(_) => Some(Suppressed(self.suppressed.swap(0, Relaxed))),
            Err(_) => {
                self.suppressed.fetch_add(1, Relaxed);
                None
            }
        }
    }

    /// Returns how many lines were suppressed, if there are any and their second is over.
    pub(super) fn flush(&self, now: Moment) -> Option<u64> {
        if self.suppressed.load(Relaxed) == 0
            || self.window.load(Relaxed) >> COUNT_BITS >= second(now)
        {
            return None;
        }
        Some(self.suppressed.swap(0, Relaxed)).filter(|count| *count > 0)
    }
}

fn second(now: Moment) -> u64 {
    now.nanoseconds_since(Moment::PAST) / SECOND
}

/// How many lines of this kind were suppressed since the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suppressed(pub(super) u64);

impl Suppressed {
    /// The value of a field, which is left out if there are none.
    pub(super) fn field(self) -> Option<u64> {
        Some(self.0).filter(|count| *count > 0)
    }
}

impl fmt::Display for Suppressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, "; {count} more of this kind were not logged"),
        }
    }
}

#[cfg(all(test, not(cenote_model)))]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_second_has_five_lines_and_the_next_one_says_how_many_are_missing() {
        let limit = Limit::default();
        let now = Moment::PAST + Duration::from_secs(7);
        let next = now + Duration::from_secs(1);

        let passed = (0..1000).filter(|_| limit.pass(now).is_some()).count();

        assert_eq!(passed as u64, MOST);
        assert_eq!(limit.flush(now), None, "the second is not over");
        let missing = limit.pass(next).expect("a new second");
        assert_eq!(missing.field(), Some(1000 - MOST));
        let text = "; 995 more of this kind were not logged";
        assert_eq!(missing.to_string(), text);
        let none = limit.pass(next).expect("a new second");
        assert_eq!((none.field(), none.to_string()), (None, String::new()));
    }

    #[test]
    fn a_count_is_flushed_once() {
        let limit = Limit::default();
        let now = Moment::PAST + Duration::from_secs(7);
        for _ in 0..8 {
            limit.pass(now);
        }

        let later = now + Duration::from_secs(1);

        assert_eq!(limit.flush(later), Some(3));
        assert_eq!(limit.flush(later), None);
    }

    #[test]
    fn a_clock_that_is_late_opens_no_new_second() {
        let limit = Limit::default();
        let now = Moment::PAST + Duration::from_secs(7);
        for _ in 0..MOST {
            assert!(limit.pass(now).is_some());
        }

        assert_eq!(limit.pass(now - Duration::from_secs(1)), None);
    }
}
