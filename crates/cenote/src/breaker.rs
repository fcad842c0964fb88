//! The circuit breaker: stops asking a backend that is down, and tries again later.
//!
//! You need this module if a pool shall stop lending by itself: give [`Builder::breaker`] one of
//! the two strategies here, or your own [`Strategy`]. By hand it works without a strategy: see
//! [`Breaker`]. Several pools of one server can have one breaker: see [`SharedBreaker`].
//!
//! The states are [`Active`](BreakerState::Active), [`Inactive`](BreakerState::Inactive) and
//! [`Recovering`](BreakerState::Recovering). Other libraries call them *closed*, *open* and
//! *half-open*. Here these words would be unclear, because resources and pools are opened and
//! closed as well.
//!
//! [`Builder::breaker`]: crate::Builder::breaker

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::ErrorClass;
use crate::manager::Manager;
use crate::pool::Pool;
pub use crate::shared_breaker::SharedBreaker;
use crate::shell::carry_out::Place;
use crate::shell::kind::{Kind, Threads};
use crate::shell::upkeep_task;
pub use crate::strategies::{ConsecutiveFailures, FailureRate};

/// Whether a pool lends. [`Breaker`] has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerState {
    /// It lends. Others call this *closed*.
    Active,
    /// It does not: every acquire fails at once with `Unavailable`. Others call this *open*.
    Inactive,
    /// The pool opens and checks one resource by itself (unless `self_probe` is off). Then it lends
    /// at most `probes` resources at once, until the strategy decides. Others call this
    /// *half-open*.
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

/// The circuit breaker of a pool, from [`Pool::breaker`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
/// use cenote::AcquireError;
/// use cenote::breaker::BreakerState;
///
/// pool.breaker().trip();
/// assert_eq!(pool.breaker().state(), BreakerState::Inactive);
/// assert!(matches!(pool.acquire().await, Err(AcquireError::Unavailable(_))));
///
/// pool.breaker().probe();
/// assert_eq!(pool.breaker().state(), BreakerState::Recovering);
/// let _probe = pool.acquire().await?;
/// assert!(pool.try_acquire()?.is_none(), "one probe at a time");
///
/// pool.breaker().reset();
/// assert_eq!(pool.breaker().state().to_string(), "active");
/// assert!(pool.acquire().await.is_ok());
/// # Ok(()) }
/// ```
pub struct Breaker<'a, M: Manager + 'static> {
    pub(crate) pool: &'a Pool<M>,
}

impl<M: Manager + 'static> Breaker<'_, M> {
    /// Returns the present state.
    pub fn state(&self) -> BreakerState {
        self.pool.shared.ledger().breaker().state
    }

    /// Makes the breaker inactive. All waiters, and all acquires from now on, fail at once with
    /// `Unavailable`.
    pub fn trip(&self) {
        self.set(BreakerState::Inactive);
    }

    /// Makes the breaker active: the pool lends.
    pub fn reset(&self) {
        self.set(BreakerState::Active);
    }

    /// Lets the breaker recover: at most `probes` resources are lent at once until the strategy
    /// decides. Without a strategy, until `reset` or `trip`.
    pub fn probe(&self) {
        self.set(BreakerState::Recovering);
    }

    /// Lets `strategy` decide from now on, in place of the one before. The state stays as it is; an
    /// inactive breaker asks the new strategy when to recover. If pools share the breaker, this
    /// and every other change is for all of them.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Err::<(), _>("down")).build()?;
    /// use cenote::breaker::{BreakerState, ConsecutiveFailures};
    ///
    /// assert!(pool.acquire().await.is_err());
    /// assert_eq!(pool.breaker().state(), BreakerState::Active, "there is no strategy");
    ///
    /// pool.breaker().set_strategy(ConsecutiveFailures::new(1));
    /// assert!(pool.acquire().await.is_err());
    /// assert_eq!(pool.breaker().state(), BreakerState::Inactive);
    ///
    /// pool.breaker().remove_strategy();
    /// pool.breaker().reset();
    /// assert!(pool.acquire().await.is_err());
    /// assert_eq!(pool.breaker().state(), BreakerState::Active);
    /// # Ok(()) }
    /// ```
    pub fn set_strategy(&self, strategy: impl Strategy) {
        self.pool.shared.set_strategy(Some(Arc::new(strategy)));
    }

    /// From now on the breaker changes only by hand. The state stays as it is.
    pub fn remove_strategy(&self) {
        self.pool.shared.set_strategy(None);
    }

    pub(crate) fn set(&self, state: BreakerState) {
        let place = Threads::<M>::here();
        if place == Place::Task {
            // Upkeep tries the pool's own probe again.
            let _ = upkeep_task::start(&self.pool.shared);
        }
        self.pool.shared.set_breaker(None, state, place);
    }
}

impl<M: Manager + 'static> fmt::Debug for Breaker<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// A failure that is reported to a [`Strategy`], with its error.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Failed<'a> {
    /// What failed.
    pub kind: Failure,
    /// The class of the error, by [`Manager::classify`].
    pub class: ErrorClass,
    /// The error. A resource that is broken, or that a hook refused, may have none.
    pub error: Option<&'a (dyn Error + 'static)>,
}

impl Failed<'_> {
    /// Makes a report without an error, for the test of a strategy.
    pub fn new(kind: Failure) -> Self {
        let (class, error) = (ErrorClass::Other, None);
        Self { kind, class, error }
    }
}

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// A resource could not be opened.
    Open,
    /// A resource failed its check, or was found broken before it was lent.
    Check,
    /// A return was refused: the resource was broken, could not be cleaned, or a hook said no.
    Return,
}

/// What a [`Strategy`] wants the breaker to do.
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

/// The answer of a [`Strategy`] that is asked whether to recover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Recovery {
    /// Let probes through.
    Now,
    /// Ask again after this time.
    After(Duration),
}

/// Decides when the breaker trips, and when it recovers.
///
/// It is called with no lock held, in the task or thread that makes the report. A panic counts as
/// [`Verdict::Keep`], or as "ask again in a second".
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use std::time::{Duration, Instant};
/// use cenote::Pool;
/// use cenote::breaker::{BreakerState, Failed, Failure, Recovery, Strategy, Verdict};
/// use cenote::error::ErrorClass;
///
/// /// Trips at the first failed open, unless the password is wrong, and tries again after ten
/// /// seconds.
/// struct Strict;
///
/// impl Strategy for Strict {
///     fn report_success(&self, _: BreakerState, _: Instant) -> Verdict {
///         Verdict::Activate
///     }
///
///     fn report_failure(&self, _: BreakerState, failed: &Failed<'_>, _: Instant) -> Verdict {
///         match (failed.kind, failed.class) {
///             (Failure::Open, ErrorClass::Denied) => Verdict::Keep,
///             (Failure::Open, _) => Verdict::Deactivate,
///             _ => Verdict::Keep,
///         }
///     }
///
///     fn should_recover(&self, inactive_for: Duration) -> Recovery {
///         match Duration::from_secs(10).checked_sub(inactive_for) {
///             Some(left) if !left.is_zero() => Recovery::After(left),
///             _ => Recovery::Now,
///         }
///     }
/// }
///
/// let opens = AtomicUsize::new(0);
/// let open = move || {
///     let is_first = opens.fetch_add(1, Ordering::Relaxed) == 0;
///     async move { if is_first { Err("connection refused") } else { Ok(()) } }
/// };
/// let pool = Pool::from_fn(open).breaker(Strict).build()?;
/// assert!(pool.acquire().await.is_err());
/// assert_eq!(pool.breaker().state(), BreakerState::Inactive);
/// tokio::time::sleep(Duration::from_secs(11)).await;
/// assert_eq!(pool.breaker().state(), BreakerState::Active, "the pool's own probe went well");
/// # Ok(()) }
/// ```
pub trait Strategy: Send + Sync + 'static {
    /// A return was accepted. While the breaker recovers, only returns of probes are reported, and
    /// the success of the pool's own probe: leases from before say nothing about the backend now.
    fn report_success(&self, state: BreakerState, now: Instant) -> Verdict;

    /// Something failed.
    fn report_failure(&self, state: BreakerState, failed: &Failed<'_>, now: Instant) -> Verdict;

    /// Returns whether to recover. Asked when the breaker has become inactive, and again when the
    /// time of the last [`Recovery::After`] is over.
    fn should_recover(&self, inactive_for: Duration) -> Recovery;
}
