//! What can be seen from outside: counts, holders, and the verdict on the pool's health.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::time::Duration;

use crate::rt::Owner;

/// One consistent snapshot of a pool. `total == idle + in_use + opening + cleaning + checking` in each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The cap now; `resize` changes it.
    pub max_size: usize,
    /// Ready to be lent.
    pub idle: usize,
    /// Lent out.
    pub in_use: usize,
    /// Slots reserved for a resource that is being opened.
    pub opening: usize,
    /// Back from a lease and not yet fit for the next one.
    pub cleaning: usize,
    /// Being checked.
    pub checking: usize,
    /// All of the above.
    pub total: usize,
    /// On its way out. Not part of `total`, but its slot is not free: `total + closing` stays within `max_size`.
    pub closing: usize,
    /// Callers in line.
    pub waiting: usize,
    /// How long the first in line has waited.
    pub oldest_wait: Option<Duration>,

    /// Leases handed out since birth.
    pub acquired: u64,
    /// Acquires that could not be served at once.
    pub waited: u64,
    /// How long those waited in total.
    pub wait_time: Duration,
    /// Leases that came back.
    pub released: u64,
    /// Of those, how many were discarded by their holder.
    pub discarded: u64,
    /// Leases that were detached: their resource left the pool with its holder.
    pub detached: u64,
    /// Resources opened.
    pub opened: u64,
    /// Opens that failed.
    pub open_failed: u64,
    /// Acquires that ran out of time.
    pub timed_out: u64,
    /// Acquires that were dropped while they waited.
    pub cancelled: u64,
    /// Leases that were out for longer than `leak_after`.
    pub leaked: u64,
    /// Resources that were closed or are about to be, by reason.
    pub closed: Closes,
}

/// Why a resource left the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Unused for longer than `idle_timeout`.
    Idle,
    /// Older than `max_lifetime`.
    Lifetime,
    /// Lent `max_uses` times.
    Uses,
    /// The manager called it broken.
    Broken,
    /// Its holder discarded it.
    Discarded,
    /// It failed its check.
    FailedCheck,
    /// It could not be cleaned.
    FailedClean,
    /// A hook or `retain`'s predicate refused it.
    Refused,
    /// `invalidate` retired it.
    Invalidated,
    /// `resize` made it one too many.
    Shrunk,
    /// The pool was closed.
    PoolClosed,
}

impl Reason {
    /// All of them, in the order of [`Closes::iter`].
    pub const ALL: [Self; 11] = [
        Self::Idle,
        Self::Lifetime,
        Self::Uses,
        Self::Broken,
        Self::Discarded,
        Self::FailedCheck,
        Self::FailedClean,
        Self::Refused,
        Self::Invalidated,
        Self::Shrunk,
        Self::PoolClosed,
    ];

    /// The name by which it goes in metrics: `failed_check`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Lifetime => "lifetime",
            Self::Uses => "uses",
            Self::Broken => "broken",
            Self::Discarded => "discarded",
            Self::FailedCheck => "failed_check",
            Self::FailedClean => "failed_clean",
            Self::Refused => "refused",
            Self::Invalidated => "invalidated",
            Self::Shrunk => "shrunk",
            Self::PoolClosed => "pool_closed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many resources were closed, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closes([u64; Reason::ALL.len()]);

impl Closes {
    /// How many for this reason.
    pub fn by(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// How many in all.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL
            .into_iter()
            .map(|reason| (reason, self.by(reason)))
    }

    pub(crate) fn add(&mut self, reason: Reason) {
        self.0[reason as usize] += 1;
    }
}

/// A verdict for a readiness probe, reached without acquiring anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// A caller would be served at once, or an open away.
    Healthy,
    /// All are out or somebody waits, but work flows. Ready, only busy.
    Busy,
    /// Somebody waits, and nothing came back for `stuck_after`.
    Stuck {
        /// How long nothing came back.
        silent_for: Duration,
    },
    /// Opening fails, or the breaker is inactive. While opening fails the pool tries again by itself.
    Down {
        /// Since when.
        down_for: Duration,
    },
    /// The pool was closed.
    Closed,
}

impl Health {
    /// Should this instance be sent work? Busy is ready.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Healthy | Self::Busy)
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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

/// One living lease, seen from outside.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Holder {
    /// Which resource.
    pub id: u64,
    /// Where it was acquired.
    pub site: &'static Location<'static>,
    /// By which task, where that is known.
    pub task: Option<Task>,
    /// For how long.
    pub held_for: Duration,
    /// What its holder called it.
    pub label: Option<Cow<'static, str>>,
}

/// Who holds a lease: a task by its number, or a thread where there was no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task(pub(crate) Owner);

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Owner::Task(id) => write!(f, "task {id}"),
            Owner::Thread(id) => write!(f, "{id:?}"),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "resource {} at {} for {:.1?}",
            self.id, self.site, self.held_for
        )?;
        if let Some(task) = &self.task {
            write!(f, " by {task}")?;
        }
        if let Some(label) = &self.label {
            write!(f, " ({label})")?;
        }
        Ok(())
    }
}

/// What was left when the time of a [`close_within`](crate::Pool::close_within) was over.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Leftover {
    /// Who still holds what, the longest first.
    pub leases: Vec<Holder>,
    /// How many resources were still being opened, checked, cleaned or closed.
    pub unfinished: usize,
}

impl Leftover {
    /// Is everything home and closed?
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty() && self.unfinished == 0
    }
}

/// All living leases that were acquired at one place in the code.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HolderGroup {
    /// The place.
    pub site: &'static Location<'static>,
    /// How many were taken there.
    pub count: usize,
    /// How long the longest of them is out.
    pub longest: Duration,
    /// What the longest of them is called.
    pub label: Option<Cow<'static, str>>,
}

impl fmt::Display for HolderGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at {}:{} for up to {:.1?}",
            self.count,
            self.site.file(),
            self.site.line(),
            self.longest
        )?;
        match &self.label {
            Some(label) => write!(f, " ({label})"),
            None => Ok(()),
        }
    }
}
