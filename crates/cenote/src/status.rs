//! The state of a pool, seen from outside: counts, leases and health.
//!
//! You need this module for the types that [`Pool::status`], [`Pool::health`] and [`Pool::leases`]
//! return. Most of them are also in the root of the crate.
//!
//! [`Pool::status`]: crate::Pool::status
//! [`Pool::health`]: crate::Pool::health
//! [`Pool::leases`]: crate::Pool::leases

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::time::Duration;

pub use crate::advice::{Advice, AdviceKind};
pub use crate::meter::{Meter, Used};
pub use crate::reasons::{CloseReason, Closes, RefusalReason, Refusals};
use crate::rt::Owner;
pub use crate::views::{SlotState, SlotView, WaiterView};

/// One consistent snapshot of a pool. `total == idle + in_use + opening + cleaning + checking`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
/// use cenote::CloseReason;
///
/// let _held = pool.acquire().await?;
/// cenote::Lease::discard(pool.acquire().await?);
///
/// let status = pool.status();
/// assert_eq!((status.max_size, status.total, status.in_use, status.idle), (10, 1, 1, 0));
/// assert_eq!((status.opening, status.checking, status.cleaning), (0, 0, 0));
/// assert_eq!((status.waiting, status.oldest_wait), (0, None));
/// assert_eq!((status.opened, status.open_failed, status.acquired), (2, 0, 2));
/// assert_eq!((status.released, status.discarded, status.detached), (1, 1, 0));
/// assert_eq!((status.timed_out, status.cancelled, status.leaked), (0, 0, 0));
/// assert_eq!(status.closes.by(CloseReason::Discarded), 1);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The present cap; [`resize`](crate::Pool::resize) changes it.
    pub max_size: usize,
    /// Resources that are ready to be lent.
    pub idle: usize,
    /// Resources that are lent.
    pub in_use: usize,
    /// Resources that are being opened.
    pub opening: usize,
    /// Resources that have come back and are being cleaned.
    pub cleaning: usize,
    /// Resources that are being checked.
    pub checking: usize,
    /// All of the above.
    pub total: usize,
    /// Resources that are being closed. They are not part of `total`, but their slots are not free:
    /// `total + closing` stays within `max_size`, and the size of the
    /// [annex](crate::Builder::annex) if there is one.
    pub closing: usize,
    /// Places that were [reserved](crate::Pool::reserve) and hold no resource yet. They count
    /// against `max_size` like leases.
    pub reserved: usize,
    /// Callers that wait.
    pub waiting: usize,
    /// How long the first of them has waited.
    pub oldest_wait: Option<Duration>,

    /// Leases handed out since the pool was built.
    pub acquired: u64,
    /// Acquires that could not be served at once.
    pub waited: u64,
    /// How long those waited, in total.
    pub wait_time: Duration,
    /// Leases that came back.
    pub released: u64,
    /// How long the leases that came back were out, in total. Divided by `released` it is the mean
    /// time of a lease; divided by the time that has passed it is the offered load: how many
    /// resources were in use on average.
    pub held_time: Duration,
    /// Of the leases that came back, those that were discarded by their holder.
    pub discarded: u64,
    /// Leases that were detached: their resource left the pool with its holder.
    pub detached: u64,
    /// Resources that were opened.
    pub opened: u64,
    /// Opens that failed.
    pub open_failed: u64,
    /// Acquires that timed out.
    pub timed_out: u64,
    /// Acquires that were dropped while they waited.
    pub cancelled: u64,
    /// Leases that were out for longer than `leak_after`.
    pub leaked: u64,
    /// Resources that were closed or are about to be, by reason.
    pub closes: Closes,
    /// Of those, resources whose close failed, hung or panicked.
    pub close_failed: u64,
    /// Acquires that were refused, by reason.
    pub refusals: Refusals,
}

/// A verdict for a readiness probe, reached without acquiring anything.
///
/// ```
/// use std::time::Duration;
/// use cenote::Health;
///
/// let stuck = Health::Stuck { silent_for: Duration::from_secs(9) };
/// assert!(!stuck.is_ready());
/// assert_eq!(stuck.to_string(), "stuck: nothing came back for 9.0s");
/// assert!(Health::Busy.is_ready(), "busy is good");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// No resource was ever opened, so it is not known whether that works. [`Pool::warm`] opens
    /// one.
    ///
    /// [`Pool::warm`]: crate::Pool::warm
    Unproven,
    /// A caller would be served at once, or after one open.
    Healthy,
    /// All resources are out or callers wait, but resources come back.
    Busy,
    /// Callers wait, and nothing came back for `stuck_after`.
    Stuck {
        /// How long nothing came back.
        silent_for: Duration,
    },
    /// Opening fails, or the breaker is inactive. While opening fails the pool tries again by
    /// itself.
    Down {
        /// For how long.
        down_for: Duration,
    },
    /// The pool was closed.
    Closed,
}

impl Health {
    /// Returns whether this instance should be sent work. `Busy` is ready, and so is `Unproven`.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Unproven | Self::Healthy | Self::Busy)
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unproven => f.write_str("unproven: nothing was opened yet"),
            Self::Healthy => f.write_str("healthy"),
            Self::Busy => f.write_str("busy"),
            Self::Stuck { silent_for } => {
                write!(f, "stuck: nothing came back for {silent_for:.1?}")
            }
            Self::Down { down_for } => write!(f, "down for {down_for:.1?}"),
            Self::Closed => f.write_str("closed"),
        }
    }
}

/// The site of a lease whose caller is not known: a layer took it, and labelled it in place of a
/// line. Texts leave this site out.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
/// use cenote::status::UNKNOWN_SITE;
///
/// let bound = pool.bind_at(UNKNOWN_SITE, None).await?;
/// cenote::Lease::label(&bound, "SELECT 1");
/// let holder = pool.leases()[0].to_string();
/// assert!(holder.starts_with("resource 1 for ") && holder.ends_with("(SELECT 1)"), "{holder}");
/// # Ok(()) }
/// ```
pub static UNKNOWN_SITE: &Location<'static> = Location::caller();

pub(crate) fn is_known(site: &'static Location<'static>) -> bool {
    !std::ptr::eq(site, UNKNOWN_SITE)
}

/// One lease that is out, or a grant that its waiter has not taken yet.
///
/// ```
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
/// let lease = pool.acquire_blocking()?;
/// cenote::Lease::label(&lease, "report");
///
/// let holder = &pool.leases()[0];
/// assert_eq!((holder.id, holder.site.file(), holder.claimed), (1, file!(), true));
/// assert_eq!(holder.label.as_deref(), Some("report"));
/// assert!(holder.task.unwrap().to_string().starts_with("ThreadId"), "no task took it");
/// assert!(holder.held_for.as_secs() < 60);
/// assert!(holder.to_string().starts_with("resource 1 at "), "{holder}");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Holder {
    /// The number of the resource.
    pub id: u64,
    /// The line of code that acquired it.
    pub site: &'static Location<'static>,
    /// The task or thread that acquired it, if that is known.
    pub task: Option<HolderId>,
    /// For how long.
    pub held_for: Duration,
    /// How much of that its resource worked, if the resource has a [`Meter`].
    pub used: Option<Used>,
    /// The label that its holder gave it.
    pub label: Option<Cow<'static, str>>,
    /// False for a grant that its waiter has not taken yet: its acquire was not polled since.
    pub claimed: bool,
}

/// The holder of a lease: a task by its number, or a thread where there was no task. [`Holder`] has
/// an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HolderId(pub(crate) Owner);

impl fmt::Display for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Owner::Task(id) => write!(f, "task {id}"),
            Owner::Thread(id) => write!(f, "{id:?}"),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.claimed { "at" } else { "granted to" };
        let Self { id, site, .. } = self;
        write!(f, "resource {id} ")?;
        if is_known(site) {
            write!(f, "{at} {site} ")?;
        }
        write_held(f, "for", self.held_for, self.used)?;
        if let Some(task) = &self.task {
            write!(f, " by {task}")?;
        }
        write_rest(f, &self.label, self.claimed)
    }
}

fn write_held(
    f: &mut fmt::Formatter<'_>,
    how: &str,
    held: Duration,
    used: Option<Used>,
) -> fmt::Result {
    write!(f, "{how} {held:.1?}")?;
    match used {
        Some(used) => write!(f, ", {used}"),
        None => Ok(()),
    }
}

fn write_rest(
    f: &mut fmt::Formatter<'_>,
    label: &Option<Cow<'static, str>>,
    claimed: bool,
) -> fmt::Result {
    if let Some(label) = label {
        write!(f, " ({label})")?;
    }
    f.write_str(if claimed { "" } else { ", not taken yet" })
}

/// The leases and the work that were left at the end of [`Pool::close_within`].
///
/// [`Pool::close_within`]: crate::Pool::close_within
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
/// # use std::time::Duration;
/// let _forgotten = pool.acquire().await?;
/// let left = pool.close_within(Duration::from_millis(5)).await;
/// assert_eq!((left.is_empty(), left.leases.len(), left.unfinished), (false, 1, 0));
/// assert!(left.to_string().starts_with("1 leased: resource 1 at "), "{left}");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Leftover {
    /// The leases that were still out, the longest first.
    pub leases: Vec<Holder>,
    /// How many resources were still being opened, checked, cleaned or closed.
    pub unfinished: usize,
    /// How many closes have failed, hung or panicked since the drain began.
    pub close_failed: u64,
}

impl Leftover {
    /// Returns whether all leases have come back and all resources are closed.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty() && self.unfinished == 0
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            f.write_str("nothing left")?;
        } else {
            write!(f, "{} leased", self.leases.len())?;
            for (nth, holder) in self.leases.iter().enumerate() {
                write!(f, "{}{holder}", if nth == 0 { ": " } else { ", " })?;
            }
            write!(f, "; {} unfinished", self.unfinished)?;
        }
        match self.close_failed {
            0 => Ok(()),
            failed => write!(f, "; {failed} failed to close"),
        }
    }
}

/// All leases that are out, were acquired on one line of code, and have one label.
///
/// [`TimedOut::holders`](crate::error::TimedOut::holders) returns them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HolderGroup {
    /// The line of code.
    pub site: &'static Location<'static>,
    /// How many leases were acquired there.
    pub count: usize,
    /// How long the longest of them is out.
    pub longest: Duration,
    /// How much of that its resource worked, if the resource has a [`Meter`].
    pub used: Option<Used>,
    /// Their label.
    pub label: Option<Cow<'static, str>>,
    /// False for grants that their waiters have not taken yet.
    pub claimed: bool,
}

impl fmt::Display for HolderGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.claimed { "at" } else { "granted to" };
        let (file, line) = (self.site.file(), self.site.line());
        let Self { count, longest, .. } = self;
        write!(f, "{count} ")?;
        if is_known(self.site) {
            write!(f, "{at} {file}:{line} ")?;
        }
        write_held(f, "for up to", *longest, self.used)?;
        write_rest(f, &self.label, self.claimed)
    }
}
