//! The error of an acquire that timed out: the state of the pool at that moment.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::OpenError;
use crate::rt::sync::AtomicBool;
use crate::status::{Holder, HolderGroup, Status};
use crate::time::Moment;

/// The state of the pool when an acquire timed out. Acquires that time out together share one
/// report.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
/// use std::time::Duration;
/// use cenote::AcquireError;
/// use cenote::error::Phase;
///
/// let _held = pool.acquire().await?;
/// let late = pool.acquire_within(Duration::from_millis(5)).await;
/// let Err(AcquireError::TimedOut(seen)) = late else { panic!() };
/// assert_eq!(seen.phase(), Phase::Queued, "it waited for a return");
/// assert!(seen.waited() >= Duration::from_millis(5));
/// assert_eq!((seen.pool(), seen.status().in_use), (pool.name(), 1));
/// assert_eq!((seen.holders()[0].count, seen.holders()[0].site.file()), (1, file!()));
/// assert!(seen.last_open_error().is_none());
/// assert!(seen.is_nested(), "this task holds the lease that it waits for");
/// # Ok(()) }
/// ```
#[non_exhaustive]
pub struct TimedOut<E> {
    /// When the caller began to wait.
    pub(crate) since: Moment,
    pub(crate) phase: Phase,
    pub(crate) seen: Arc<Report<E>>,
}

/// The state of a pool, shared by the acquires that time out together.
#[derive(Debug)]
pub(crate) struct Report<E> {
    pub(crate) pool: Arc<str>,
    /// When they timed out.
    pub(crate) at: Moment,
    pub(crate) status: Status,
    pub(crate) holders: Vec<HolderGroup>,
    /// Present if every lease was taken by a task that now waits. The first acquire that returns
    /// this report raises the event, unless it was raised before.
    pub(crate) circle_told: Option<Arc<AtomicBool>>,
    /// Those leases, if the event is yet to be raised.
    pub(crate) circle: Vec<Holder>,
    pub(crate) last_failure: Option<OpenError<E>>,
    pub(crate) note: Option<Arc<str>>,
}

impl<E> TimedOut<E> {
    /// Returns the pool's name.
    pub fn pool(&self) -> &str {
        &self.seen.pool
    }

    /// Returns how long the caller waited.
    pub fn waited(&self) -> Duration {
        self.seen.at.saturating_duration_since(self.since)
    }

    /// Returns what the caller was waiting for at the end.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the state of the pool at that moment.
    pub fn status(&self) -> &Status {
        &self.seen.status
    }

    /// Returns the leases that were out, grouped by call site, the longest first.
    pub fn holders(&self) -> &[HolderGroup] {
        &self.seen.holders
    }

    /// Returns whether every lease was taken by a task that itself waited for this pool. A lease
    /// counts for the task that acquired it, also after it was moved to another.
    pub fn is_nested(&self) -> bool {
        self.seen.circle_told.is_some()
    }

    /// Returns the last error of an open, unless an open succeeded since.
    pub fn last_open_error(&self) -> Option<&OpenError<E>> {
        self.seen.last_failure.as_ref()
    }

    /// Returns what [`Pool::set_note`](crate::Pool::set_note) has set.
    pub fn note(&self) -> Option<&str> {
        self.seen.note.as_deref()
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
            .field("note", &self.note())
            .field("status", self.status())
            .finish()
    }
}

/// How many call sites the one-line text names; `holders()` has the rest.
const SITES_SHOWN: usize = 3;

impl<E> fmt::Display for TimedOut<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pool, waited, holders) = (self.pool(), self.waited(), self.holders());
        let status = self.status();
        let seen = Seen { status, holders };
        write!(f, "pool `{pool}`: no resource within {waited:.1?}: {seen}")?;
        if let Some(note) = self.note() {
            write!(f, "; {note}")?;
        }
        if self.is_nested() {
            return f.write_str(
                "; nested acquire: every lease was taken by a task that now waits for this pool: \
                 take one lease per task and pass it along",
            );
        }
        if let Some(error) = self.last_open_error() {
            return write!(f, "; {error}");
        }
        f.write_str(match self.phase {
            Phase::Queued if holders.iter().any(|group| !group.claimed) => {
                "; a caller does not poll its acquire: poll it, or drop it"
            }
            // The note says what limits the pool.
            Phase::Queued | Phase::Suspended if self.note().is_some() => "",
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

/// The part of the text that says how the pool is used.
pub(crate) struct Seen<'a> {
    pub(crate) status: &'a Status,
    pub(crate) holders: &'a [HolderGroup],
}

impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, holders } = self;
        write!(f, "{} of {} in use", status.in_use, status.max_size)?;
        if status.reserved > 0 {
            write!(f, ", {} reserved", status.reserved)?;
        }
        write!(
            f,
            ", {} opening, {} waiting",
            status.opening, status.waiting
        )?;
        for (nth, group) in holders.iter().take(SITES_SHOWN).enumerate() {
            f.write_str(if nth == 0 { "; held: " } else { ", " })?;
            group.fmt(f)?;
        }
        if holders.len() > SITES_SHOWN {
            write!(f, " and {} more places", holders.len() - SITES_SHOWN)?;
        }
        Ok(())
    }
}

/// What an acquire was waiting for when it timed out. [`TimedOut`] has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// For a return: all resources were out.
    Queued,
    /// For a resource that was being opened.
    Opening,
    /// For a resource that was being checked.
    Checking,
    /// For a resource that was being cleaned.
    Cleaning,
    /// For room: a resource was being closed.
    Closing,
    /// For [`resume`](crate::Pool::resume): the pool was suspended.
    Suspended,
    /// For the pool's own probe, or for a probe to come back: the breaker was recovering.
    Recovering,
}
