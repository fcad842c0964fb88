//! Errors: one enum per verb, each variant a different thing for the caller to do.

use std::error::Error;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::ledger::TimeIsUp;
use crate::status::{HolderGroup, Status};

/// Why an acquire failed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).max_size(1).build()?;
/// use std::time::Duration;
/// use cenote::AcquireError;
///
/// let _held = pool.acquire().await?;
/// match pool.acquire_timeout(Duration::from_millis(5)).await {
///     Err(AcquireError::TimedOut(seen)) => assert_eq!(seen.holders()[0].count, 1),
///     other => panic!("it was to time out: {other:?}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum AcquireError<E> {
    /// No resource in time. Says who holds them, and where they were taken.
    TimedOut(TimedOut<E>),
    /// The pool was closed; it will not open again.
    Closed {
        /// The pool's name.
        pool: Arc<str>,
    },
    /// The circuit breaker is inactive: come back later.
    Unavailable {
        /// The pool's name.
        pool: Arc<str>,
        /// For how long it has been inactive.
        since: Duration,
        /// When it is worth asking again, if the strategy said so.
        retry_after: Option<Duration>,
        /// The open error that led to it, if one did.
        cause: Option<OpenError<E>>,
    },
    /// A resource could not be opened.
    Open {
        /// The pool's name.
        pool: Arc<str>,
        /// Why.
        error: OpenError<E>,
    },
    /// All are out, and as many wait already as may (`max_waiters`).
    Rejected {
        /// The pool's name.
        pool: Arc<str>,
        /// How many wait.
        waiting: usize,
    },
    /// This task holds a lease of this pool already, and `nested` is `Deny`.
    Nested {
        /// The pool's name.
        pool: Arc<str>,
        /// Where the lease that it holds was acquired.
        held: &'static Location<'static>,
    },
}

impl<E> AcquireError<E> {
    /// Can the same call succeed later, with nothing changed by the caller?
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::TimedOut(_)
            | Self::Unavailable { .. }
            | Self::Open { .. }
            | Self::Rejected { .. } => true,
            Self::Closed { .. } | Self::Nested { .. } => false,
        }
    }

    /// The name of the pool that says so.
    pub fn pool(&self) -> &str {
        match self {
            Self::TimedOut(timed_out) => timed_out.pool(),
            Self::Closed { pool }
            | Self::Unavailable { pool, .. }
            | Self::Open { pool, .. }
            | Self::Rejected { pool, .. }
            | Self::Nested { pool, .. } => pool,
        }
    }
}

impl<E> fmt::Display for AcquireError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(timed_out) => timed_out.fmt(f),
            Self::Closed { pool } => write!(f, "pool `{pool}` is closed"),
            Self::Unavailable {
                pool,
                since,
                retry_after,
                ..
            } => {
                write!(
                    f,
                    "pool `{pool}` is unavailable: its breaker is inactive for {since:.1?}"
                )?;
                match retry_after {
                    Some(after) => write!(f, ", retry after {after:.1?}"),
                    None => Ok(()),
                }
            }
            Self::Open { pool, error } => write!(f, "pool `{pool}`: {error}"),
            Self::Rejected { pool, waiting } => {
                write!(
                    f,
                    "pool `{pool}` has {waiting} waiting already: shed load or raise `max_waiters`"
                )
            }
            Self::Nested { pool, held } => write!(
                f,
                "nested acquire on pool `{pool}`: this task holds a lease from {held} already: pass it along, or allow it by `nested`"
            ),
        }
    }
}

impl<E: Error + 'static> Error for AcquireError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::TimedOut(timed_out) => timed_out.last_open_error().map(|error| error as _),
            Self::Unavailable { cause, .. } => cause.as_ref().map(|error| error as _),
            // The text of an open error is part of ours, so its own cause comes next.
            Self::Open { error, .. } => error.source(),
            Self::Closed { .. } | Self::Rejected { .. } | Self::Nested { .. } => None,
        }
    }
}

/// What was seen when an acquire ran out of time. Those who did so at once saw the same.
pub struct TimedOut<E>(pub(crate) TimeIsUp<OpenError<E>>);

impl<E> TimedOut<E> {
    /// The pool's name.
    pub fn pool(&self) -> &str {
        &self.0.seen.pool
    }

    /// How long the caller waited.
    pub fn waited(&self) -> Duration {
        self.0.waited()
    }

    /// What it was waiting for at the end.
    pub fn phase(&self) -> Phase {
        self.0.seen.phase
    }

    /// The pool at that moment.
    pub fn status(&self) -> &Status {
        &self.0.seen.status
    }

    /// Who held the resources, grouped by call site, the longest first.
    pub fn holders(&self) -> &[HolderGroup] {
        &self.0.seen.holders
    }

    /// Was every lease held by a task that itself waited for this pool?
    pub fn is_nested(&self) -> bool {
        self.0.seen.nested
    }

    /// The last error of an open, unless one succeeded since.
    pub fn last_open_error(&self) -> Option<&OpenError<E>> {
        self.0.seen.last_failure.as_ref()
    }
}

impl<E: fmt::Debug> fmt::Debug for TimedOut<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedOut")
            .field("pool", &self.pool())
            .field("waited", &self.waited())
            .field("phase", &self.phase())
            .field("holders", &self.holders())
            .field("is_nested", &self.is_nested())
            .field("last_open_error", &self.last_open_error())
            .field("status", self.status())
            .finish()
    }
}

/// How many call sites the one-line text names; `holders()` has the rest.
const SITES_SHOWN: usize = 3;

impl<E> fmt::Display for TimedOut<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status {
            max_size,
            in_use,
            waiting,
            opening,
            ..
        } = self.0.seen.status;
        write!(
            f,
            "pool `{}`: no resource within {:.1?}: ",
            self.0.seen.pool,
            self.waited()
        )?;
        write!(
            f,
            "{in_use} of {max_size} in use, {opening} opening, {waiting} waiting"
        )?;
        for (nth, group) in self.0.seen.holders.iter().take(SITES_SHOWN).enumerate() {
            f.write_str(if nth == 0 { "; held: " } else { ", " })?;
            group.fmt(f)?;
        }
        if let Some(more) = self
            .holders()
            .len()
            .checked_sub(SITES_SHOWN)
            .filter(|more| *more > 0)
        {
            write!(f, " and {more} more places")?;
        }
        if self.0.seen.nested {
            return f.write_str(
                "; nested acquire: every lease is held by a task that waits for this pool: take one lease per task and pass it along",
            );
        }
        f.write_str(match self.0.seen.phase {
            Phase::Queued => "; shorten leases or raise `max_size`",
            Phase::Opening => "; opening is slow or fails: see `open_timeout` and `max_opening`",
            Phase::Checking => "; checks are slow: see `check_timeout`",
            Phase::Cleaning => "; cleaning is slow: see `clean_timeout`",
            Phase::Closing => "; closing is slow: see `close_timeout`",
            Phase::Suspended => "; the pool is suspended: call `resume`",
            Phase::Recovering => "; the breaker is recovering: see `probes`",
        })
    }
}

/// What an acquire was waiting for when its time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// All were out, and none came back.
    Queued,
    /// A resource was being opened.
    Opening,
    /// A resource was being checked.
    Checking,
    /// A resource was being cleaned.
    Cleaning,
    /// A resource was being closed, to make room.
    Closing,
    /// The pool was suspended.
    Suspended,
    /// The breaker was recovering, and its probes were out.
    Recovering,
}

/// Why a resource could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError<E> {
    /// The manager said so.
    Failed(Arc<E>),
    /// It took longer than `open_timeout`.
    TimedOut(Duration),
    /// The manager panicked, with this message.
    Panicked(Arc<str>),
}

impl<E> Clone for OpenError<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(Arc::clone(error)),
            Self::TimedOut(limit) => Self::TimedOut(*limit),
            Self::Panicked(message) => Self::Panicked(Arc::clone(message)),
        }
    }
}

impl<E> fmt::Display for OpenError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(_) => f.write_str("opening a resource failed"),
            Self::TimedOut(limit) => write!(
                f,
                "opening took longer than {limit:.1?}: see `open_timeout`"
            ),
            Self::Panicked(message) => write!(f, "opening a resource panicked: {message}"),
        }
    }
}

impl<E: Error + 'static> Error for OpenError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            Self::TimedOut(_) | Self::Panicked(_) => None,
        }
    }
}

/// Why a warm-up failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum WarmError<E> {
    /// A resource could not be opened.
    Open(OpenError<E>),
    /// The pool was closed meanwhile.
    Closed,
}

impl<E> fmt::Display for WarmError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => write!(f, "the pool could not be warmed up: {error}"),
            Self::Closed => f.write_str("the pool was closed while it was warmed up"),
        }
    }
}

impl<E: Error + 'static> Error for WarmError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Open(error) => error.source(),
            Self::Closed => None,
        }
    }
}
