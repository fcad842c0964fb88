//! Reads a trace. Nothing in it is trusted.

use std::error::Error;
use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use cenote::Config;

use super::format::{
    Content, END, HEAD, LONGEST_BLOCK, MARK, RECORDS, START, checksum, parse_head,
};
use super::recorded::{
    End, KEPT, OPENED, Outcome, RESIZED, RETURNED, Recorded, SITE, Stop, TIMED_OUT, Visit,
};

/// Why a trace could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// The source could not be read.
    Read(io::Error),
    /// It is another kind of file.
    NoTrace,
    /// It was written by a version of cenote that this one does not know.
    Version(u8),
    /// It ends in the middle of a block: a copy was cut off.
    CutOff {
        /// Up to here the blocks are whole.
        at: u64,
    },
    /// A block was changed after it was written.
    Broken {
        /// Where the block begins.
        at: u64,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "the trace cannot be read: {error}"),
            Self::NoTrace => f.write_str("this is no trace of cenote: record one first"),
            Self::Version(version) => write!(
                f,
                "the trace has version {version}, and only version {} is known: update cenote",
                MARK[7]
            ),
            Self::CutOff { at } => write!(
                f,
                "the trace is cut off in the middle of the block at byte {at}: copy it again"
            ),
            Self::Broken { at } => write!(
                f,
                "the block at byte {at} of the trace is broken: copy it again"
            ),
        }
    }
}

impl Error for TraceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Read(error) => error.source(),
            _ => None,
        }
    }
}

impl Recorded {
    /// Reads a trace to its end. A trace without an end block is complete so far: its program was
    /// ended while it recorded. A trace that ends in the middle of a block is an error.
    pub fn read(mut from: impl Read) -> Result<Self, TraceError> {
        let mut mark = [0; MARK.len()];
        let length = fill(&mut from, &mut mark)?;
        let (name, version) = (&mark[..7], mark[7]);
        if length < mark.len() || name != &MARK[..7] {
            return Err(TraceError::NoTrace);
        }
        if version != MARK[7] {
            return Err(TraceError::Version(version));
        }
        let mut reading = Reading {
            from,
            at: MARK.len() as u64,
            last_arrival: 0,
        };
        let first = reading.block()?.ok_or(reading.cut_off())?;
        let mut recorded = start(&first).ok_or(TraceError::Broken { at: 8 })?;
        loop {
            let at = reading.at;
            let Some(content) = reading.block()? else {
                return Ok(recorded);
            };
            // An end is the last block. A later one would be of another trace.
            let read = recorded.end.is_none() && reading.add(&content, &mut recorded).is_some();
            if !read {
                return Err(TraceError::Broken { at });
            }
        }
    }
}

struct Reading<R> {
    from: R,
    at: u64,
    last_arrival: u64,
}

impl<R: Read> Reading<R> {
    /// Returns the content of the next block, or `None` at the end.
    fn block(&mut self) -> Result<Option<Vec<u8>>, TraceError> {
        let mut head = [0; HEAD];
        match fill(&mut self.from, &mut head)? {
            0 => return Ok(None),
            HEAD => {}
            _ => return Err(self.cut_off()),
        }
        let (length, sum) = parse_head(&head);
        if length > LONGEST_BLOCK {
            return Err(TraceError::Broken { at: self.at });
        }
        let mut content = vec![0; length];
        if fill(&mut self.from, &mut content)? < length {
            return Err(self.cut_off());
        }
        if checksum(&content) != sum {
            return Err(TraceError::Broken { at: self.at });
        }
        self.at += (HEAD + length) as u64;
        Ok(Some(content))
    }

    fn cut_off(&self) -> TraceError {
        TraceError::CutOff { at: self.at }
    }

    fn add(&mut self, content: &[u8], to: &mut Recorded) -> Option<()> {
        let mut content = Content(content);
        match content.byte()? {
            RECORDS => {
                while !content.is_empty() {
                    self.record(&mut content, to)?;
                }
            }
            END => to.end = Some(end(&mut content)?),
            _ => return None,
        }
        content.is_empty().then_some(())
    }

    fn record(&mut self, content: &mut Content<'_>, to: &mut Recorded) -> Option<()> {
        let tag = content.byte()?;
        match tag & 0b111 {
            SITE => to.sites.push(content.text()?),
            OPENED => to.opens.push(content.time()?),
            RESIZED => to.resizes.push(content.size()?),
            kind @ (RETURNED | KEPT | TIMED_OUT) => {
                let arrival = self.last_arrival.checked_add_signed(content.signed()?)?;
                self.last_arrival = arrival;
                let waited = content.time()?;
                let outcome = match kind {
                    RETURNED => Outcome::Returned {
                        held: content.time()?,
                    },
                    KEPT => Outcome::Kept,
                    _ => Outcome::TimedOut,
                };
                let site = content.size().filter(|&site| site < to.sites.len())?;
                to.visits.push(Visit {
                    arrival: Duration::from_micros(arrival),
                    waited,
                    outcome,
                    site,
                    lane: tag >> 3,
                });
            }
            _ => return None,
        }
        Some(())
    }
}

/// Reads the first block, whose fields are those of [`Recorded::start`].
fn start(content: &[u8]) -> Option<Recorded> {
    let mut content = Content(content);
    if content.byte()? != START {
        return None;
    }
    let name = content.text()?;
    let mut config = Config {
        name: (!name.is_empty()).then_some(name),
        max_size: content.size()?,
        min_size: content.size()?,
        min_idle: content.size()?,
        max_opening: content.size()?,
        ..Config::default()
    };
    let (total, unix_ms) = (content.size()?, content.number()?);
    let mut time = || Some(content.option()?.map(Duration::from_micros));
    config.acquire_timeout = time()?;
    config.idle_timeout = time()?;
    config.max_lifetime = time()?;
    config.max_uses = content.option()?;
    let most = content.option()?;
    config.max_waiters = most.map(usize::try_from).transpose().ok()?;
    content.is_empty().then(|| Recorded {
        config,
        total,
        unix_ms,
        sites: vec![UNKNOWN.to_owned()],
        ..Recorded::default()
    })
}

/// The name of the first site.
const UNKNOWN: &str = "unknown";

fn end(content: &mut Content<'_>) -> Option<End> {
    Some(End {
        stop: *Stop::ALL.get(usize::from(content.byte()?))?,
        lasted: content.time()?,
        lost: content.number()?,
        cancelled: content.number()?,
        refused: content.number()?,
    })
}

/// Reads until the bytes are full, or the source ends. Returns how many were read.
fn fill(from: &mut impl Read, bytes: &mut [u8]) -> Result<usize, TraceError> {
    let mut length = 0;
    while length < bytes.len() {
        match from.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(TraceError::Read(error)),
        }
    }
    Ok(length)
}
