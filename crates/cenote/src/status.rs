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
    /// No resource was ever opened, so it is not known whether that works. A readiness probe chooses what this means: [`Pool::warm`]
    /// opens one.
    ///
    /// [`Pool::warm`]: crate::Pool::warm
    Unproven,
    /// A caller would be served at once, or after one open.
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
    /// False for a resource that was granted to a waiter which has not taken it yet: its acquire was not polled since.
    pub claimed: bool,
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
            "resource {} {} {} for {:.1?}",
            self.id,
            if self.claimed { "at" } else { "granted to" },
            self.site,
            self.held_for
        )?;
        if let Some(task) = &self.task {
            write!(f, " by {task}")?;
        }
        if let Some(label) = &self.label {
            write!(f, " ({label})")?;
        }
        if !self.claimed {
            f.write_str(", not taken yet")?;
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

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing left");
        }
        write!(f, "{} leased", self.leases.len())?;
        for (nth, holder) in self.leases.iter().enumerate() {
            write!(f, "{}{holder}", if nth == 0 { ": " } else { ", " })?;
        }
        write!(f, "; {} unfinished", self.unfinished)
    }
}

/// All living leases that were acquired on one line of the code, with one label.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HolderGroup {
    /// The place.
    pub site: &'static Location<'static>,
    /// How many were taken there.
    pub count: usize,
    /// How long the longest of them is out.
    pub longest: Duration,
    /// Their label.
    pub label: Option<Cow<'static, str>>,
    /// False for resources that were granted to waiters which have not taken them yet.
    pub claimed: bool,
}

impl fmt::Display for HolderGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {}:{} for up to {:.1?}",
            self.count,
            if self.claimed { "at" } else { "granted to" },
            self.site.file(),
            self.site.line(),
            self.longest
        )?;
        if let Some(label) = &self.label {
            write!(f, " ({label})")?;
        }
        match self.claimed {
            true => Ok(()),
            false => f.write_str(", not taken yet"),
        }
    }
}
