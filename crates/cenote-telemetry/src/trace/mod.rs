//! Traces of a pool: every acquire with its wait and its lease, in about ten bytes.
//!
//! A [`Trace`] records a pool of a running service to a file. `cenote replay FILE --max-size 4..40`
//! then shows how long the same callers would have waited with other sizes. The program can fetch a
//! trace from the live page, too: `cenote record URL`.
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::fs::File;
//! use cenote::Pool;
//! use cenote_telemetry::trace::{Recorded, Trace};
//!
//! # let folder = std::env::temp_dir();
//! # let file = folder.join(format!("cenote-trace-doc-{}", std::process::id()));
//! let pool = Pool::from_fn(async || Ok::<_, &str>(())).name("orders").build()?;
//! let recording = Trace::to_file(&file).limit(16 << 20).start(&pool)?;
//! drop(pool.acquire().await?);
//! let end = recording.end()?;
//! assert_eq!(end.lost, 0);
//!
//! let trace = Recorded::read(File::open(&file)?)?;
//! assert_eq!(trace.config.name.as_deref(), Some("orders"));
//! assert_eq!(trace.visits.len(), 1);
//! # std::fs::remove_file(file)?;
//! # Ok(()) }
//! ```
//!
//! # Format
//! A trace begins with the seven letters `cenotet` and a byte for the version, 1. Blocks follow:
//! the length and the checksum (FNV-1a) of the content, each as four bytes with the lowest first,
//! and the content. Its first byte is 1 for the settings of the pool, 2 for records, and 3 for the
//! end. Numbers have seven bits in a byte, the lowest first. Times are microseconds. A visit has
//! one byte for its outcome and its lane, then the difference of its arrival to that of the record
//! before, the wait, the time of the lease, and the number of the site. Blocks are written whole,
//! so the trace of a program that was killed can be read up to its last block.

mod format;
mod pairing;
mod read;
mod recorded;
mod recording;

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use cenote::registry::{self, AnyPool};
use cenote::{Manager, Pool};

pub use format::whole_blocks;
pub use read::TraceError;
pub use recorded::{End, Outcome, Recorded, Stop, Visit};
pub use recording::Recording;
use recording::{Sink, To};

/// About 1.5 million leases.
const LIMIT: u64 = 16 << 20;

/// Records a pool. The [module](self) has an example.
///
/// Events are queued without a lock and written by a thread. If they come faster than the disk
/// takes them, some are lost, which the end of the trace tells. No caller of the pool ever waits
/// for the disk.
#[must_use = "nothing is recorded before `start`"]
pub struct Trace {
    to: Target,
    limit: u64,
    lasts: Duration,
}

enum Target {
    Path(PathBuf),
    Writer(Box<dyn Write + Send>),
}

impl Trace {
    /// Records to a file, which is replaced if it exists.
    pub fn to_file(path: impl Into<PathBuf>) -> Self {
        Self::new(Target::Path(path.into()))
    }

    /// Records to a writer, on a thread of its own, so it may block. An error of the writer ends
    /// the recording.
    pub fn to_writer(writer: impl Write + Send + 'static) -> Self {
        Self::new(Target::Writer(Box::new(writer)))
    }

    fn new(to: Target) -> Self {
        Self {
            to,
            limit: LIMIT,
            lasts: Duration::MAX,
        }
    }

    /// Sets how many bytes the trace may have. Then the recording ends. Default 16 MiB, which is
    /// enough for about 1.5 million leases.
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Sets how long to record. Default: until the recording is ended or dropped.
    pub fn lasting(mut self, time: Duration) -> Self {
        self.lasts = time;
        self
    }

    /// Begins to record a pool. It is not kept alive.
    pub fn start<M: Manager + 'static>(self, pool: &Pool<M>) -> io::Result<Recording> {
        let mut all = registry::pools().into_iter();
        let any = all.find(|any| any.number() == pool.number());
        let gone = || io::Error::new(io::ErrorKind::NotFound, "the pool is gone");
        self.start_any(any.ok_or_else(gone)?)
    }

    /// Begins to record a pool from [the list of living pools](cenote::registry::pools).
    pub fn start_any(self, pool: AnyPool) -> io::Result<Recording> {
        Recording::start(self, pool)
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("limit", &self.limit)
            .field("lasts", &self.lasts)
            .finish_non_exhaustive()
    }
}

impl Target {
    fn open(self) -> io::Result<Sink> {
        Ok(Sink::new(match self {
            Self::Writer(writer) => To::Other(writer),
            Self::Path(path) => {
                let file = File::create(&path).map_err(|error| {
                    let text = format!("cannot write `{}`: {error}", path.display());
                    io::Error::new(error.kind(), text)
                })?;
                To::File(file)
            }
        }))
    }
}

#[cfg(test)]
mod tests;
