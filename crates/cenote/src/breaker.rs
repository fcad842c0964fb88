//! The circuit breaker: when to stop asking a backend that is down, and when to try it again.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use crate::backoff::Backoff;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Whether a pool lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerState {
    /// It does.
    Active,
    /// It does not: every acquire fails at once with `Unavailable`.
    Inactive,
    /// It lends at most `probes` resources at once, until the strategy decides.
    Recovering,
}

impl fmt::Display for BreakerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Inactive => "inactive",
            Self::Recovering => "recovering",
        })
    }
}

/// What went wrong, for a strategy that minds only some of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// A resource could not be opened.
    Open,
    /// A resource failed its check.
    Check,
    /// A return was refused: broken, could not be cleaned, or its hook said no.
    Return,
}

/// What a strategy wants the breaker to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Stay as it is.
    Keep,
    /// Become active.
    Activate,
    /// Become inactive.
    Deactivate,
}

/// What a strategy answers when it is asked whether to recover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Recovery {
    /// Let probes through.
    Now,
    /// Ask again after this long.
    After(Duration),
}

/// Decides when the breaker trips and when it recovers.
///
/// Called outside every lock, from the task or thread whose report it is. A panic counts as [`Verdict::Keep`], or as
/// "ask again in a second".
pub trait Strategy: Send + Sync + 'static {
    /// A return was accepted. While recovering, only that of a probe: what was lent before says nothing about now.
    fn report_success(&self, state: BreakerState, now: Instant) -> Verdict;

    /// Something failed.
    fn report_failure(&self, state: BreakerState, failure: Failure, now: Instant) -> Verdict;

    /// Asked when the breaker has become inactive, and again whenever the answer was [`Recovery::After`] and that time is over.
    fn should_recover(&self, inactive_for: Duration) -> Recovery;
}

/// Trips after a number of failures in a row. One success while recovering makes it active again.
///
/// ```
/// use std::time::Duration;
/// use cenote::{BreakerState, ConsecutiveFailures, Pool};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::from_fn(async || Err::<(), _>(std::io::Error::other("down")))
///     .breaker(ConsecutiveFailures::new(2))
///     .build()?;
/// for _ in 0..2 {
///     assert!(pool.acquire().await.is_err());
/// }
/// assert_eq!(pool.breaker_state(), BreakerState::Inactive);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ConsecutiveFailures {
    threshold: u32,
    recent: Mutex<Streak>,
}

#[derive(Debug)]
struct Streak {
    failures: u32,
    delay: Delay,
}

impl ConsecutiveFailures {
    /// Trips when `threshold` failures come in a row (at least 1). It recovers after about a second, then two, then four, up to a
    /// minute.
    pub fn new(threshold: u32) -> Self {
        Self {
            threshold: threshold.max(1),
            recent: Mutex::new(Streak {
                failures: 0,
                delay: Delay::default(),
            }),
        }
    }

    /// Recovers after about `first`, which doubles with every failed recovery up to `longest`.
    #[must_use]
    pub fn recover_after(self, first: Duration, longest: Duration) -> Self {
        lock(&self.recent).delay = Delay::new(first, longest);
        self
    }
}

impl Strategy for ConsecutiveFailures {
    fn report_success(&self, state: BreakerState, _: Instant) -> Verdict {
        let mut recent = lock(&self.recent);
        recent.failures = 0;
        recent.delay.succeeded(state)
    }

    fn report_failure(&self, state: BreakerState, _: Failure, _: Instant) -> Verdict {
        let mut recent = lock(&self.recent);
        recent.failures = recent.failures.saturating_add(1);
        let tripped = recent.failures >= self.threshold;
        let verdict = recent.delay.failed(state, tripped);
        if verdict == Verdict::Deactivate {
            // What led to this trip does not count towards the next.
            recent.failures = 0;
        }
        verdict
    }

    fn should_recover(&self, inactive_for: Duration) -> Recovery {
        lock(&self.recent).delay.recovery(inactive_for)
    }
}

/// Trips when too large a part of what happened within a window of time failed.
///
/// ```
/// use std::time::{Duration, Instant};
/// use cenote::{BreakerState, Failure, FailureRate, Strategy, Verdict};
///
/// let strategy = FailureRate::new(0.5, Duration::from_secs(10), 4);
/// let mut fail = || strategy.report_failure(BreakerState::Active, Failure::Open, Instant::now());
/// assert_eq!([fail(), fail(), fail()], [Verdict::Keep; 3]);
/// assert_eq!(fail(), Verdict::Deactivate);
/// ```
#[derive(Debug)]
pub struct FailureRate {
    rate: f64,
    window: Duration,
    least: usize,
    recent: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    /// When, and whether it failed. Oldest first.
    reports: VecDeque<(Instant, bool)>,
    delay: Delay,
}

/// More reports than this add nothing to a rate.
const REPORTS_KEPT: usize = 1024;

impl FailureRate {
    /// Trips when `rate` (0 to 1) or more of the reports within `window` are failures, and there are `least` reports or more.
    pub fn new(rate: f64, window: Duration, least: usize) -> Self {
        let recent = Window {
            reports: VecDeque::new(),
            delay: Delay::default(),
        };
        Self {
            rate,
            window,
            least: least.clamp(1, REPORTS_KEPT),
            recent: Mutex::new(recent),
        }
    }

    /// Recovers after about `first`, which doubles with every failed recovery up to `longest`.
    #[must_use]
    pub fn recover_after(self, first: Duration, longest: Duration) -> Self {
        lock(&self.recent).delay = Delay::new(first, longest);
        self
    }

    fn report(&self, failed: bool, now: Instant) -> (MutexGuard<'_, Window>, bool) {
        let mut recent = lock(&self.recent);
        let reports = &mut recent.reports;
        reports.push_back((now, failed));
        while reports.len() > REPORTS_KEPT
            || reports
                .front()
                .is_some_and(|(at, _)| now.saturating_duration_since(*at) > self.window)
        {
            reports.pop_front();
        }
        let failures = reports.iter().filter(|(_, failed)| *failed).count();
        let tripped =
            reports.len() >= self.least && failures as f64 >= self.rate * reports.len() as f64;
        (recent, tripped)
    }
}

impl Strategy for FailureRate {
    fn report_success(&self, state: BreakerState, now: Instant) -> Verdict {
        let (mut recent, _) = self.report(false, now);
        let verdict = recent.delay.succeeded(state);
        if verdict == Verdict::Activate {
            recent.reports.clear();
        }
        verdict
    }

    fn report_failure(&self, state: BreakerState, _: Failure, now: Instant) -> Verdict {
        let (mut recent, tripped) = self.report(true, now);
        let verdict = recent.delay.failed(state, tripped);
        if verdict == Verdict::Deactivate {
            // What led to this trip does not count towards the next.
            recent.reports.clear();
        }
        verdict
    }

    fn should_recover(&self, inactive_for: Duration) -> Recovery {
        lock(&self.recent).delay.recovery(inactive_for)
    }
}

/// The recovery delay that both strategies share: jittered, and doubled by every recovery that fails.
#[derive(Debug)]
struct Delay {
    backoff: Backoff,
    current: Duration,
}

impl Default for Delay {
    fn default() -> Self {
        Self::new(Duration::from_secs(1), Duration::from_secs(60))
    }
}

impl Delay {
    fn new(first: Duration, longest: Duration) -> Self {
        Self {
            backoff: Backoff::new(first, longest),
            current: first,
        }
    }

    fn succeeded(&mut self, state: BreakerState) -> Verdict {
        if state != BreakerState::Recovering {
            return Verdict::Keep;
        }
        self.backoff.reset();
        Verdict::Activate
    }

    fn failed(&mut self, state: BreakerState, tripped: bool) -> Verdict {
        let trips = match state {
            BreakerState::Active => tripped,
            BreakerState::Recovering => true,
            BreakerState::Inactive => false,
        };
        if !trips {
            return Verdict::Keep;
        }
        self.current = self.backoff.next(&mut fastrand::Rng::new());
        Verdict::Deactivate
    }

    fn recovery(&self, inactive_for: Duration) -> Recovery {
        match self.current.checked_sub(inactive_for) {
            Some(left) if !left.is_zero() => Recovery::After(left),
            _ => Recovery::Now,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
