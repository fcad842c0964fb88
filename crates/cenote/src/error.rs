//! Errors: one enum per verb, each variant a different thing for the caller to do.
//!
//! You need this module for the details of an error, such as [`TimedOut`] and [`Cause`]. The enums
//! [`AcquireError`], [`OpenError`] and [`WarmError`] are also in the root of the crate.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

pub use crate::error_class::ErrorClass;
use crate::status::{RefusalReason, is_known};
pub use crate::timed_out::{Phase, TimedOut};
pub use crate::warm_error::WarmError;

/// Why an acquire failed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
/// use std::time::Duration;
/// use cenote::AcquireError;
///
/// let _held = pool.acquire().await?;
/// let error = pool.acquire_within(Duration::from_millis(5)).await.unwrap_err();
/// assert!(matches!(&error, AcquireError::TimedOut(seen) if seen.holders().len() == 1));
/// assert_eq!(error.pool(), pool.name());
/// assert!(error.is_retryable());
///
/// pool.close();
/// let error = pool.acquire().await.unwrap_err();
/// assert!(matches!(error, AcquireError::Closed { .. }) && !error.is_retryable());
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum AcquireError<E> {
    /// No resource came free in time. The error says which call sites hold them.
    TimedOut(TimedOut<E>),
    /// The pool was closed. It will not open again.
    Closed {
        /// The pool's name.
        pool: Arc<str>,
    },
    /// The circuit breaker is inactive (open): come back later.
    Unavailable(Box<Unavailable<E>>),
    /// A resource could not be opened.
    Open {
        /// The pool's name.
        pool: Arc<str>,
        /// Why.
        error: OpenError<E>,
    },
    /// All resources are out, and `max_waiters` callers wait already.
    Rejected {
        /// The pool's name.
        pool: Arc<str>,
        /// How many callers wait.
        waiting: usize,
    },
    /// `acquire_blocking` was called in a task, on the only thread of its runtime. No other task
    /// could run while it waits.
    BlockingInRuntime {
        /// The pool's name.
        pool: Arc<str>,
    },
    /// A [`LocalPool`](crate::local::LocalPool) was used outside of a `LocalSet`, and its tasks
    /// could not be started: use it in `LocalSet::run_until`, or in a task of the set.
    NoLocalSet {
        /// The pool's name.
        pool: Arc<str>,
    },
    /// This task already holds a lease of this pool, and `nested` is `Deny`.
    Nested {
        /// The pool's name.
        pool: Arc<str>,
        /// The line of code that acquired the lease that it holds.
        held: &'static Location<'static>,
    },
}

impl<E> AcquireError<E> {
    /// Returns whether the same call can succeed later, with nothing changed by the caller.
    pub fn is_retryable(&self) -> bool {
        !matches!(
            self,
            Self::Closed { .. }
                | Self::Nested { .. }
                | Self::BlockingInRuntime { .. }
                | Self::NoLocalSet { .. }
        )
    }

    /// Returns the pool's name.
    pub fn pool(&self) -> &str {
        match self {
            Self::TimedOut(timed_out) => timed_out.pool(),
            Self::Unavailable(unavailable) => &unavailable.pool,
            Self::Closed { pool }
            | Self::BlockingInRuntime { pool }
            | Self::NoLocalSet { pool }
            | Self::Open { pool, .. }
            | Self::Rejected { pool, .. }
            | Self::Nested { pool, .. } => pool,
        }
    }
}

impl<E> AcquireError<E> {
    /// Returns why the caller was refused, if it was refused before its time was over.
    pub(crate) fn refusal(&self) -> Option<RefusalReason> {
        match self {
            Self::Rejected { .. } => Some(RefusalReason::Rejected),
            Self::Unavailable(_) => Some(RefusalReason::Unavailable),
            Self::Nested { .. } => Some(RefusalReason::Nested),
            Self::Closed { .. } => Some(RefusalReason::Closed),
            Self::TimedOut(_)
            | Self::Open { .. }
            | Self::BlockingInRuntime { .. }
            | Self::NoLocalSet { .. } => None,
        }
    }
}

impl<E> fmt::Display for AcquireError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(timed_out) => timed_out.fmt(f),
            Self::Closed { pool } => write!(f, "pool `{pool}` is closed"),
            Self::Unavailable(unavailable) => unavailable.fmt(f),
            Self::Open { pool, error } => write!(f, "pool `{pool}`: {error}"),
            Self::Rejected { pool, waiting } => write!(
                f,
                "pool `{pool}` has {waiting} waiting already: shed load or raise `max_waiters`"
            ),
            Self::BlockingInRuntime { pool } => write!(
                f,
                "pool `{pool}`: `acquire_blocking` would block the only thread of this runtime: \
                 use `acquire().await`, or call it in `spawn_blocking`"
            ),
            Self::NoLocalSet { pool } => write!(
                f,
                "pool `{pool}` belongs to one thread and cannot start its tasks: \
                 use it in a `LocalSet`"
            ),
            Self::Nested { pool, held } => {
                write!(
                    f,
                    "nested acquire on pool `{pool}`: this task holds a lease"
                )?;
                if is_known(held) {
                    write!(f, " from {held}")?;
                }
                f.write_str(" already: pass it along, or allow it by `nested`")
            }
        }
    }
}

impl<E: fmt::Debug + 'static> Error for AcquireError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The text of an open error is part of this text, so its own cause comes next.
        let shown = match self {
            Self::TimedOut(timed_out) => timed_out.last_open_error()?,
            Self::Unavailable(unavailable) => unavailable.cause.as_ref()?,
            Self::Open { error, .. } => error,
            _ => return None,
        };
        shown.source()
    }
}

/// The circuit breaker is inactive (open).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::breaker::ConsecutiveFailures;
/// use cenote::{AcquireError, Pool};
///
/// let pool = Pool::from_fn(async || Err::<(), _>("connection refused")).name("orders");
/// let pool = pool.breaker(ConsecutiveFailures::new(1)).build()?;
/// assert!(pool.acquire().await.is_err(), "this trips it");
///
/// let Err(AcquireError::Unavailable(seen)) = pool.acquire().await else { panic!() };
/// assert_eq!((&*seen.pool, seen.since.as_secs()), ("orders", 0));
/// assert_eq!(seen.cause.as_ref().unwrap().to_string(), "opening failed: connection refused");
/// assert!(seen.retry_after.is_none_or(|after| after.as_secs() <= 1));
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Unavailable<E> {
    /// The pool's name.
    pub pool: Arc<str>,
    /// For how long the breaker has been inactive.
    pub since: Duration,
    /// When it is worth asking again, if the strategy said so.
    pub retry_after: Option<Duration>,
    /// The open error that led to it, if one did.
    pub cause: Option<OpenError<E>>,
}

impl<E> fmt::Display for Unavailable<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, since, .. } = self;
        write!(
            f,
            "pool `{pool}` is unavailable: its breaker tripped {since:.1?} ago"
        )?;
        if let Some(after) = self.retry_after {
            write!(f, ", retry after {after:.1?}")?;
        }
        match &self.cause {
            Some(cause) => write!(f, "; {cause}"),
            None => Ok(()),
        }
    }
}

/// Why a resource could not be opened.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use cenote::{AcquireError, OpenError, Pool};
///
/// let pool = Pool::from_fn(std::future::pending::<Result<(), &str>>)
///     .open_timeout(Duration::from_millis(5))
///     .build()?;
/// let Err(AcquireError::Open { error, .. }) = pool.acquire().await else { panic!() };
/// assert!(matches!(error, OpenError::TimedOut(limit) if limit.as_millis() == 5));
/// assert_eq!(error.to_string(), "opening took longer than 5.0ms: see `open_timeout`");
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError<E> {
    /// The manager returned an error.
    Failed(Cause<E>),
    /// The open took longer than `open_timeout`.
    TimedOut(Duration),
    /// The manager panicked, with this message.
    Panicked(Arc<str>),
}

impl<E> Clone for OpenError<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Failed(cause) => Self::Failed(cause.clone()),
            Self::TimedOut(limit) => Self::TimedOut(*limit),
            Self::Panicked(message) => Self::Panicked(Arc::clone(message)),
        }
    }
}

impl<E> fmt::Display for OpenError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(cause) => {
                f.write_str("opening failed: ")?;
                write_chain(f, cause.as_error())
            }
            Self::TimedOut(limit) => write!(
                f,
                "opening took longer than {limit:.1?}: see `open_timeout`"
            ),
            Self::Panicked(message) => write!(f, "opening panicked: {message}"),
        }
    }
}

impl<E: fmt::Debug + 'static> Error for OpenError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(cause) => Some(cause.as_error()),
            Self::TimedOut(_) | Self::Panicked(_) => None,
        }
    }
}

/// The error that a manager returned. Several callers may get the same one.
///
/// If the manager's error implements [`Error`], this dereferences to it. Errors of all kinds, also
/// `String`, `anyhow::Error` and boxed ones, are seen by [`as_error`](Cause::as_error).
///
/// ```
/// use std::io;
///
/// use cenote::error::Cause;
///
/// let cause = Cause::from(io::Error::from(io::ErrorKind::TimedOut));
/// assert_eq!(cause.kind(), io::ErrorKind::TimedOut);
///
/// let cause = Cause::from(String::from("connection refused"));
/// assert_eq!(cause.as_error().to_string(), "connection refused");
/// ```
pub struct Cause<E> {
    error: Arc<dyn Error + Send + Sync>,
    manager: PhantomData<fn() -> E>,
}

impl<E> Cause<E> {
    /// Returns the error as a trait object, with its own causes in [`source`](Error::source).
    pub fn as_error(&self) -> &(dyn Error + 'static) {
        &*self.error
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Cause<E> {
    fn from(error: E) -> Self {
        Self {
            error: Arc::from(error.into()),
            manager: PhantomData,
        }
    }
}

impl<E: Error + 'static> Deref for Cause<E> {
    type Target = E;

    fn deref(&self) -> &E {
        let error = self.error.downcast_ref();
        error.expect("bug: an error is boxed as it is")
    }
}

impl<E> Clone for Cause<E> {
    fn clone(&self) -> Self {
        Self {
            error: Arc::clone(&self.error),
            manager: PhantomData,
        }
    }
}

impl<E> fmt::Debug for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// Writes an error and its causes in one line. Many errors repeat their cause in their own text; it
/// is not written twice.
fn write_chain(f: &mut fmt::Formatter<'_>, error: &dyn Error) -> fmt::Result {
    let mut said = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string().replace('\n', " ");
        if said.is_empty() {
            said = text;
        } else if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        next = error.source();
    }
    f.write_str(&said)
}
