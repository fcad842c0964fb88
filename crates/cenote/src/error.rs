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
    /// `acquire_blocking` was called in a task, on the only thread of its runtime: no other task could run while it waits.
    BlockingInRuntime {
        /// The pool's name.
        pool: Arc<str>,
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
            Self::Closed { .. } | Self::Nested { .. } | Self::BlockingInRuntime { .. } => false,
        }
    }

    /// The name of the pool that says so.
    pub fn pool(&self) -> &str {
        match self {
            Self::TimedOut(timed_out) => timed_out.pool(),
            Self::Closed { pool }
            | Self::BlockingInRuntime { pool }
            | Self::Unavailable { pool, .. }
            | Self::Open { pool, .. }
            | Self::Rejected { pool, .. }
            | Self::Nested { pool, .. } => pool,
        }
    }
}

impl<E: Error> fmt::Display for AcquireError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(timed_out) => timed_out.fmt(f),
            Self::Closed { pool } => write!(f, "pool `{pool}` is closed"),
            Self::Unavailable {
                pool,
                since,
                retry_after,
                cause,
            } => {
                write!(
                    f,
                    "pool `{pool}` is unavailable: its breaker tripped {since:.1?} ago"
                )?;
                if let Some(after) = retry_after {
                    write!(f, ", retry after {after:.1?}")?;
                }
                match cause {
                    Some(cause) => write!(f, "; {cause}"),
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
            Self::BlockingInRuntime { pool } => write!(
                f,
                "pool `{pool}`: `acquire_blocking` would block the only thread of this runtime: use `acquire().await`, or call it in `spawn_blocking`"
            ),
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
            // The text of an open error is part of ours, so its own cause comes next.
            Self::TimedOut(timed_out) => timed_out.last_open_error()?.source(),
            Self::Unavailable { cause, .. } => cause.as_ref()?.source(),
            Self::Open { error, .. } => error.source(),
            Self::Closed { .. }
            | Self::Rejected { .. }
            | Self::Nested { .. }
            | Self::BlockingInRuntime { .. } => None,
        }
    }
}

/// The state of the pool when an acquire timed out. Acquires that time out together share one report.
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
        self.0.phase
    }

    /// The pool at that moment.
    pub fn status(&self) -> &Status {
        &self.0.seen.status
    }

    /// Who held the resources, grouped by call site, the longest first.
    pub fn holders(&self) -> &[HolderGroup] {
        &self.0.seen.holders
    }

    /// Returns whether every lease was taken by a task that itself waited for this pool. A lease counts for the task that acquired it,
    /// also after it was moved to another.
    pub fn is_nested(&self) -> bool {
        self.0.seen.circle_told.is_some()
    }

    fn has_unclaimed(&self) -> bool {
        self.holders().iter().any(|group| !group.claimed)
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

impl<E: Error> fmt::Display for TimedOut<E> {
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
        if self.is_nested() {
            return f.write_str(
                "; nested acquire: every lease was taken by a task that now waits for this pool: take one lease per task and pass it along",
            );
        }
        if let Some(error) = self.last_open_error() {
            return write!(f, "; {error}");
        }
        f.write_str(match self.0.phase {
            Phase::Queued if self.has_unclaimed() => {
                "; a caller does not poll its acquire: poll it, or drop it"
            }
            Phase::Queued => "; shorten leases or raise `max_size`",
            Phase::Opening => "; opening is slow: see `open_timeout` and `max_opening`",
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

impl<E: Error> fmt::Display for OpenError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => {
                f.write_str("opening failed: ")?;
                write_chain(f, &**error)
            }
            Self::TimedOut(limit) => write!(
                f,
                "opening took longer than {limit:.1?}: see `open_timeout`"
            ),
            Self::Panicked(message) => write!(f, "opening panicked: {message}"),
        }
    }
}

/// Writes an error and its causes in one line. Many errors say their cause in their own text: it is not said twice.
fn write_chain(f: &mut fmt::Formatter<'_>, error: &dyn Error) -> fmt::Result {
    let mut said = one_line(error);
    let mut next = error.source();
    while let Some(cause) = next {
        let text = one_line(cause);
        if !said.contains(&text) {
            said.push_str(": ");
            said.push_str(&text);
        }
        next = cause.source();
    }
    f.write_str(&said)
}

fn one_line(error: &dyn Error) -> String {
    error.to_string().replace('\n', " ")
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

impl<E: Error> fmt::Display for WarmError<E> {
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
