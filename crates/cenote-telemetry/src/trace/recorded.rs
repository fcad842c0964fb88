//! A trace as data: what was recorded, and how it becomes records.

use std::io::{self, Write};
use std::time::Duration;

use cenote::Config;

use super::format::{
    END, MARK, RECORDS, START, framed, micros, put, put_option, put_signed, put_text,
};

/// A trace that was read, or is to be written.
///
/// ```
/// use std::time::Duration;
/// use cenote_telemetry::trace::{Outcome, Recorded, Visit};
///
/// let mut trace = Recorded::default();
/// trace.config.name = Some("orders".to_owned());
/// trace.visits.push(Visit {
///     arrival: Duration::from_millis(3),
///     waited: Duration::from_micros(250),
///     outcome: Outcome::Returned { held: Duration::from_millis(12) },
///     site: 0,
///     lane: 0,
/// });
///
/// let mut bytes = Vec::new();
/// trace.write(&mut bytes)?;
/// assert_eq!(Recorded::read(&*bytes)?.visits, trace.visits);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// The settings of the pool that decide how long callers wait. The others have their defaults.
    pub config: Config,
    /// How many resources the pool had at the start.
    pub total: usize,
    /// When the recording began, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The calls of acquire, in the order in which they ended.
    pub visits: Vec<Visit>,
    /// The lines of code that acquired, as `file:line`. The first stands for all that are not
    /// known.
    pub sites: Vec<String>,
    /// How long each open took.
    pub opens: Vec<Duration>,
    /// Each value that `max_size` was changed to.
    pub resizes: Vec<usize>,
    /// How the recording ended. `None`: its program ended first, or was interrupted.
    pub end: Option<End>,
}

/// One call of acquire, and the lease that it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// When it began, from the start of the recording.
    pub arrival: Duration,
    /// How long it waited.
    pub waited: Duration,
    /// How it ended.
    pub outcome: Outcome,
    /// The line of code, as a place in [`Recorded::sites`].
    pub site: usize,
    /// The lane of the caller. There is one lane today, so this is zero. At most 31.
    pub lane: u8,
}

/// How a call of acquire has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It got a lease, which came back.
    Returned {
        /// For how long the lease was out.
        held: Duration,
    },
    /// It got a lease, which was still out at the end, or was detached.
    Kept,
    /// It timed out.
    TimedOut,
}

/// The end of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Why it ended.
    pub stop: Stop,
    /// How long it lasted.
    pub lasted: Duration,
    /// Events that are missing, because they came faster than they could be written.
    pub lost: u64,
    /// Acquires that were dropped while they waited. The pool only counts them, so they are not
    /// among the visits.
    pub cancelled: u64,
    /// Acquires that were refused at once. They are not among the visits.
    pub refused: u64,
}

/// Why a recording has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The program asked for it.
    Asked,
    /// Its time was over.
    Time,
    /// It was as long as it may be, in bytes.
    Limit,
    /// The pool was dropped.
    PoolGone,
}

impl Stop {
    pub(super) const ALL: [Self; 4] = [Self::Asked, Self::Time, Self::Limit, Self::PoolGone];
}

impl Recorded {
    /// Writes the trace.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        to.write_all(&self.start())?;
        let mut records = Records::default();
        // The first site is known without a record.
        self.sites
            .iter()
            .skip(1)
            .for_each(|site| records.site(site));
        self.opens.iter().for_each(|&took| records.opened(took));
        self.resizes.iter().for_each(|&size| records.resized(size));
        for visit in &self.visits {
            records.visit(visit);
            if records.is_full() {
                to.write_all(&records.take())?;
            }
        }
        to.write_all(&records.take())?;
        match &self.end {
            Some(end) => to.write_all(&end.block()),
            None => Ok(()),
        }
    }

    /// Returns the mark and the first block.
    pub(super) fn start(&self) -> Vec<u8> {
        let Self { config, .. } = self;
        let mut content = vec![START];
        put_text(&mut content, config.name.as_deref().unwrap_or_default());
        for size in [config.max_size, config.min_size, config.min_idle] {
            put(&mut content, size as u64);
        }
        for size in [config.max_opening, self.total] {
            put(&mut content, size as u64);
        }
        put(&mut content, self.unix_ms);
        for time in [
            config.acquire_timeout,
            config.idle_timeout,
            config.max_lifetime,
        ] {
            put_option(&mut content, time.map(micros));
        }
        put_option(&mut content, config.max_uses);
        put_option(&mut content, config.max_waiters.map(|most| most as u64));
        [&MARK[..], &framed(&content)].concat()
    }
}

impl End {
    pub(super) fn block(&self) -> Vec<u8> {
        let mut content = vec![END, self.stop as u8];
        for number in [micros(self.lasted), self.lost, self.cancelled, self.refused] {
            put(&mut content, number);
        }
        framed(&content)
    }
}

/// The kinds of records, in the lowest three bits of their first byte. The others are the lane.
pub(super) const RETURNED: u8 = 0;
pub(super) const KEPT: u8 = 1;
pub(super) const TIMED_OUT: u8 = 2;
pub(super) const SITE: u8 = 3;
pub(super) const OPENED: u8 = 4;
pub(super) const RESIZED: u8 = 5;

/// A block of this length is written. Then few bytes are spent on its head.
const FULL: usize = 32 << 10;

/// The records of the block that is being filled.
#[derive(Debug, Default)]
pub(super) struct Records {
    content: Vec<u8>,
    /// Arrivals are stored as the difference to the one before, also across blocks.
    last_arrival: u64,
}

impl Records {
    pub(super) fn visit(&mut self, visit: &Visit) {
        let (kind, held) = match visit.outcome {
            Outcome::Returned { held } => (RETURNED, Some(held)),
            Outcome::Kept => (KEPT, None),
            Outcome::TimedOut => (TIMED_OUT, None),
        };
        self.begin(kind | visit.lane.min(31) << 3);
        let arrival = micros(visit.arrival);
        put_signed(
            &mut self.content,
            arrival.wrapping_sub(self.last_arrival) as i64,
        );
        self.last_arrival = arrival;
        put(&mut self.content, micros(visit.waited));
        if let Some(held) = held {
            put(&mut self.content, micros(held));
        }
        put(&mut self.content, visit.site as u64);
    }

    pub(super) fn site(&mut self, name: &str) {
        self.begin(SITE);
        put_text(&mut self.content, name);
    }

    pub(super) fn opened(&mut self, took: Duration) {
        self.begin(OPENED);
        put(&mut self.content, micros(took));
    }

    pub(super) fn resized(&mut self, to: usize) {
        self.begin(RESIZED);
        put(&mut self.content, to as u64);
    }

    pub(super) fn is_full(&self) -> bool {
        self.content.len() >= FULL
    }

    /// Returns the block, or nothing if it has no record.
    pub(super) fn take(&mut self) -> Vec<u8> {
        if self.content.is_empty() {
            return Vec::new();
        }
        let block = framed(&self.content);
        self.content.clear();
        block
    }

    fn begin(&mut self, tag: u8) {
        if self.content.is_empty() {
            self.content.push(RECORDS);
        }
        self.content.push(tag);
    }
}
