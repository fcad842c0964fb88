//! The log of a `ProblemLayer`: one line for each problem, by the facade of the crate `tracing`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use http::StatusCode;
use tracing::{Level, error, event_enabled, warn};

use crate::estimate::now;
use crate::problem::Problem;

/// How many lines are written in each second. The seconds are counted from the making of the layer,
/// so twice as many fit into a second that begins in the middle.
const MOST: u64 = 5;

/// The bits of `window` that count lines.
const COUNT_BITS: u32 = 8;

#[derive(Debug)]
pub(crate) struct Log {
    made_at: Instant,
    /// The present second, and how many lines were written in it.
    window: AtomicU64,
    suppressed: AtomicU64,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self {
            made_at: now(),
            window: AtomicU64::new(0),
            suppressed: AtomicU64::new(0),
        }
    }

    /// Writes the report of a problem of status 500 and above: as a warning if the request can be
    /// sent again later, and as an error if not.
    pub(crate) fn write(&self, problem: &Problem) {
        let is_busy = problem.status() == StatusCode::SERVICE_UNAVAILABLE;
        let wanted = match is_busy {
            true => event_enabled!(target: "cenote", Level::WARN),
            false => event_enabled!(target: "cenote", Level::ERROR),
        };
        let Some(suppressed) = wanted.then(|| self.pass(now())).flatten() else {
            return;
        };
        let method = problem.method().map(tracing::field::display);
        let (route, status) = (problem.route(), problem.status().as_u16());
        let (report, suppressed) = (problem.report(), (suppressed > 0).then_some(suppressed));
        match is_busy {
            true => warn!(target: "cenote", method, route, status, suppressed, "{report}"),
            false => error!(target: "cenote", method, route, status, suppressed, "{report}"),
        }
    }

    /// Returns how many lines were suppressed since the last one, if one may be written now.
    fn pass(&self, now: Instant) -> Option<u64> {
        // The first second is number one, because a new window is at zero.
        let second = now.saturating_duration_since(self.made_at).as_secs() + 1;
        let next = |window: u64| match window >> COUNT_BITS {
            last if last < second => Some(second << COUNT_BITS | 1),
            _ => (window & ((1 << COUNT_BITS) - 1) < MOST).then_some(window + 1),
        };
        match self.window.fetch_update(Relaxed, Relaxed, next) {
            Ok(_) => Some(self.suppressed.swap(0, Relaxed)),
            Err(_) => {
                self.suppressed.fetch_add(1, Relaxed);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_second_has_five_lines_and_the_next_one_says_how_many_are_missing() {
        let log = Log::new();
        let next = log.made_at + Duration::from_secs(1);

        let passed = (0..100).filter(|_| log.pass(log.made_at).is_some());

        assert_eq!(passed.count() as u64, MOST);
        assert_eq!(log.pass(next), Some(100 - MOST));
        assert_eq!(log.pass(next), Some(0));
    }
}
