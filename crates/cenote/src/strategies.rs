//! The strategies that come with the pool. The module [`breaker`](crate::breaker) has them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::breaker::{BreakerState, Failed, Recovery, Strategy, Verdict};
use crate::rt::sync::{Mutex, MutexGuard, PoisonError};
use crate::time::Backoff;

/// Trips after a number of failures in a row. One success while recovering makes it active again.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use cenote::Pool;
/// use cenote::breaker::{BreakerState, ConsecutiveFailures};
///
/// let twice = ConsecutiveFailures::new(2)
///     .recover_after(Duration::from_secs(5), Duration::from_secs(60));
/// let pool = Pool::from_fn(async || Err::<(), _>("down")).breaker(twice).build()?;
/// for state in [BreakerState::Active, BreakerState::Inactive] {
///     assert!(pool.acquire().await.is_err());
///     assert_eq!(pool.breaker().state(), state);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ConsecutiveFailures(Mutex<Recent<Streak>>);

#[derive(Debug)]
struct Streak {
    threshold: u32,
    failures: u32,
}

impl ConsecutiveFailures {
    /// Trips when `threshold` failures come in a row (at least 1). It recovers after about a
    /// second, then two, then four, up to a minute.
    pub fn new(threshold: u32) -> Self {
        Self(Recent::new(Streak {
            threshold: threshold.max(1),
            failures: 0,
        }))
    }
}

impl Reports for Streak {
    fn add(&mut self, failed: bool, _: Instant) -> bool {
        self.failures = match failed {
            true => self.failures.saturating_add(1),
            false => 0,
        };
        self.failures >= self.threshold
    }

    fn clear(&mut self) {
        self.failures = 0;
    }
}

/// Trips when too large a part of the reports within a window of time are failures. One success
/// while recovering makes it active again.
///
/// ```
/// use std::time::{Duration, Instant};
/// use cenote::breaker::{BreakerState, Failed, Failure, FailureRate, Strategy, Verdict};
///
/// let strategy = FailureRate::new(0.5, Duration::from_secs(10), 4);
/// let failed = Failed::new(Failure::Open);
/// let fail = || strategy.report_failure(BreakerState::Active, &failed, Instant::now());
/// assert_eq!([fail(), fail(), fail()], [Verdict::Keep; 3]);
/// assert_eq!(fail(), Verdict::Deactivate);
/// ```
#[derive(Debug)]
pub struct FailureRate(Mutex<Recent<Window>>);

#[derive(Debug)]
struct Window {
    rate: f64,
    length: Duration,
    least: usize,
    /// When, and whether it failed. Oldest first.
    reports: VecDeque<(Instant, bool)>,
}

/// More reports than this add nothing to a rate.
const REPORTS_KEPT: usize = 1024;

impl FailureRate {
    /// Trips when `rate` (0 to 1) or more of the reports within `window` are failures, and there
    /// are `least` reports or more. It recovers as [`ConsecutiveFailures`] does.
    pub fn new(rate: f64, window: Duration, least: usize) -> Self {
        Self(Recent::new(Window {
            rate,
            length: window,
            least: least.clamp(1, REPORTS_KEPT),
            reports: VecDeque::new(),
        }))
    }
}

impl Reports for Window {
    fn add(&mut self, failed: bool, now: Instant) -> bool {
        let reports = &mut self.reports;
        reports.push_back((now, failed));
        let is_old = |(at, _): &(Instant, bool)| now.saturating_duration_since(*at) > self.length;
        while reports.len() > REPORTS_KEPT || reports.front().is_some_and(is_old) {
            reports.pop_front();
        }
        let failures = reports.iter().filter(|(_, failed)| *failed).count();
        reports.len() >= self.least && failures as f64 >= self.rate * reports.len() as f64
    }

    fn clear(&mut self) {
        self.reports.clear();
    }
}

/// What a strategy remembers of the reports.
trait Reports {
    /// Returns whether the breaker should trip.
    fn add(&mut self, failed: bool, now: Instant) -> bool;
    fn clear(&mut self);
}

/// The part that both strategies share: the delay before a recovery is jittered, and doubled by
/// every recovery that fails.
#[derive(Debug)]
struct Recent<T> {
    reports: T,
    backoff: Backoff,
    delay: Duration,
}

impl<T: Reports> Recent<T> {
    fn new(reports: T) -> Mutex<Self> {
        let delay = Duration::from_secs(1);
        Mutex::new(Self {
            reports,
            backoff: Backoff::new(delay, Duration::from_secs(60)),
            delay,
        })
    }

    fn report(&mut self, state: BreakerState, failed: bool, now: Instant) -> Verdict {
        let tripped = self.reports.add(failed, now);
        let verdict = match (state, failed) {
            (BreakerState::Recovering, false) => {
                self.backoff.reset();
                Verdict::Activate
            }
            (BreakerState::Active, true) if !tripped => return Verdict::Keep,
            (BreakerState::Active | BreakerState::Recovering, true) => {
                self.delay = self.backoff.next(&mut fastrand::Rng::new());
                Verdict::Deactivate
            }
            _ => return Verdict::Keep,
        };
        // Reports that led to this change do not count towards the next.
        self.reports.clear();
        verdict
    }
}

macro_rules! strategies {
    ($($strategy:ident)*) => {$(
        impl $strategy {
            /// Recovers after about `first`, which doubles with every failed recovery up to
            /// `longest`.
            #[must_use]
            pub fn recover_after(self, first: Duration, longest: Duration) -> Self {
                let mut recent = lock(&self.0);
                recent.backoff = Backoff::new(first, longest);
                recent.delay = first;
                drop(recent);
                self
            }
        }

        impl Strategy for $strategy {
            fn report_success(&self, state: BreakerState, now: Instant) -> Verdict {
                lock(&self.0).report(state, false, now)
            }

            fn report_failure(&self, state: BreakerState, _: &Failed<'_>, now: Instant) -> Verdict {
                lock(&self.0).report(state, true, now)
            }

            fn should_recover(&self, inactive_for: Duration) -> Recovery {
                match lock(&self.0).delay.checked_sub(inactive_for) {
                    Some(left) if !left.is_zero() => Recovery::After(left),
                    _ => Recovery::Now,
                }
            }
        }
    )*};
}

strategies!(ConsecutiveFailures FailureRate);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
