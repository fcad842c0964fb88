//! What is exported: one list of figures and one of times, with their names in each format.
//! Every exporter walks through these lists, so that all of them show the same.
//!
//! The names that begin with `db.client.connection` are those of OpenTelemetry's conventions. The
//! others fill the gaps of the conventions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cenote::{Health, Status};

/// How long something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Create,
    Wait,
    Use,
}

impl Time {
    pub(crate) const ALL: [Self; 3] = [Self::Create, Self::Wait, Self::Use];

    /// Returns the name in OpenTelemetry and in the `metrics` facade.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "db.client.connection.create_time",
            Self::Wait => "db.client.connection.wait_time",
            Self::Use => "db.client.connection.use_time",
        }
    }

    pub(crate) fn prometheus(self) -> &'static str {
        match self {
            Self::Create => "cenote_create_seconds",
            Self::Wait => "cenote_wait_seconds",
            Self::Use => "cenote_use_seconds",
        }
    }

    pub(crate) fn help(self) -> &'static str {
        match self {
            Self::Create => "The time it took to open a resource.",
            Self::Wait => "The time it took to obtain a resource from the pool.",
            Self::Use => "The time between borrowing a resource and returning it to the pool.",
        }
    }
}

/// The bounds of histograms. A trip through an idle pool takes less than the first one.
pub(crate) const BOUNDS: [Duration; 15] = [
    Duration::from_micros(1),
    Duration::from_micros(5),
    Duration::from_micros(10),
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// The attribute with the name of the pool, in OpenTelemetry and in the `metrics` facade.
pub(crate) const POOL: &str = "db.client.connection.pool.name";

/// One pool at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// The pool's name, or `name#2` and so on if there are several of that name.
    pub(crate) label: Arc<str>,
    pub(crate) status: Status,
    pub(crate) health: Health,
    pub(crate) min_idle: usize,
    /// Present if the pool is in a fleet that the exporter was given.
    pub(crate) fleet: Option<Fleet>,
}

/// The fleet of a pool, as its member sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fleet {
    pub(crate) capacity: u32,
    pub(crate) granted: u32,
    pub(crate) share: u32,
    pub(crate) wants: u32,
    pub(crate) members: usize,
    pub(crate) is_reached: bool,
    pub(crate) failures: u64,
    pub(crate) lapses: u64,
}

/// One number, or one for each value of an attribute.
pub(crate) struct Figure {
    /// The name in OpenTelemetry and in the `metrics` facade.
    pub(crate) name: &'static str,
    pub(crate) prometheus: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) help: &'static str,
    pub(crate) kind: Kind,
    pub(crate) read: Read,
}

impl Figure {
    /// Tells the number, or each number with the value of the attribute that it belongs to.
    pub(crate) fn tell(
        &self,
        pool: &Snapshot,
        mut tell: impl FnMut(Option<(&Attribute, &'static str)>, Number),
    ) {
        match &self.read {
            Read::Count(read) => tell(None, Number::Count(read(pool))),
            Read::Time(read) => tell(None, Number::Time(read(pool))),
            Read::Fleet(read) => {
                if let Some(fleet) = &pool.fleet {
                    tell(None, Number::Count(read(fleet)));
                }
            }
            Read::By(attribute, read) => {
                for (value, count) in read(pool) {
                    tell(Some((attribute, value)), Number::Count(count));
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It only grows.
    Counter,
    /// It can be added up over pools.
    UpDown,
    /// It cannot.
    Gauge,
}

pub(crate) enum Read {
    Count(fn(&Snapshot) -> u64),
    Time(fn(&Snapshot) -> Duration),
    /// A number that only pools in a fleet have.
    Fleet(fn(&Fleet) -> u64),
    /// A number for each value of the attribute.
    By(Attribute, fn(&Snapshot) -> Vec<(&'static str, u64)>),
}

pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    pub(crate) prometheus: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Count(u64),
    Time(Duration),
}

impl Number {
    /// Returns the count. A time has whole seconds.
    pub(crate) fn whole(self) -> u64 {
        match self {
            Self::Count(count) => count,
            Self::Time(time) => time.as_secs(),
        }
    }

    /// Returns the count, or the time in seconds.
    pub(crate) fn real(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Time(time) => time.as_secs_f64(),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Time(time) => time.as_secs_f64().fmt(f),
        }
    }
}
