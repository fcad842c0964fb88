//! A recording under way: an observer that queues events, and a thread that writes them.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cenote::event::{
    AcquireRefused, AcquireTimedOut, Acquired, Detached, Observer, Opened, Released, Resized,
};
use cenote::registry::AnyPool;

use super::Trace;
use super::format::micros;
use super::pairing::{Pairing, Told};
use super::recorded::{End, Recorded, Records, Stop};

/// How many events may be queued. They take about two megabytes. More are lost, and counted.
const QUEUE: usize = 1 << 15;

/// How often the thread looks at the queue. Senders do not wake it, so they are fast.
const PACE: Duration = Duration::from_millis(20);

/// A block that is not full is written after this time, so that little is lost in a crash.
const LATEST: Duration = Duration::from_secs(1);

/// Room for the block at the end.
const END_LENGTH: u64 = 64;

/// A recording under way, from [`Trace::start`]. Dropping it ends it, and waits until the last
/// events are written.
#[derive(Debug)]
pub struct Recording {
    ear: Arc<Ear>,
    thread: Option<JoinHandle<io::Result<End>>>,
}

impl Recording {
    pub(super) fn start(trace: Trace, pool: AnyPool) -> io::Result<Self> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "the pool is gone");
        let status = pool.status().ok_or_else(gone)?;
        let mut config = pool.config().ok_or_else(gone)?;
        (config.name, config.max_size) = (Some(pool.name().to_owned()), status.max_size);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let start = Recorded {
            config,
            total: status.total,
            unix_ms: unix.map_or(0, |unix| unix.as_millis() as u64),
            ..Recorded::default()
        };
        let to = trace.to.open()?;

        let (queue, events) = sync_channel(QUEUE);
        let ear = Arc::new(Ear {
            started: now(),
            queue,
            lost: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            asked_to_stop: AtomicBool::new(false),
        });
        let writer = Writer {
            ear: Arc::clone(&ear),
            cancelled: status.cancelled,
            pool,
            events,
            start,
            pairing: Pairing::default(),
            records: Records::default(),
            to,
            limit: trace.limit,
            lasts: trace.lasts,
            last_write: now(),
        };
        writer.pool.attach(Arc::clone(&ear) as _);
        let thread = thread::Builder::new().name("cenote-trace".to_owned());
        let thread = Some(thread.spawn(move || writer.run())?);
        Ok(Self { ear, thread })
    }

    /// Returns whether events are still recorded. A recording ends by itself at its limit, and when
    /// the pool is dropped or the disk is full.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|it| !it.is_finished())
    }

    /// Asks the thread to end soon, and does not wait for it.
    pub fn stop(&self) {
        self.ear.asked_to_stop.store(true, Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// Ends the recording, writes the last events, and returns how it has ended. An error is that
    /// of the disk; what was written before stays a trace that can be read.
    pub fn end(mut self) -> io::Result<End> {
        self.join()
            .unwrap_or_else(|| Err(io::Error::other("the recording has panicked")))
    }

    fn join(&mut self) -> Option<io::Result<End>> {
        self.stop();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // The owner did not ask how it has ended.
        let _ = self.join();
    }
}

/// The observer. It neither blocks nor allocates.
#[derive(Debug)]
struct Ear {
    started: Instant,
    queue: SyncSender<Told>,
    lost: AtomicU64,
    refused: AtomicU64,
    asked_to_stop: AtomicBool,
}

impl Ear {
    fn at(&self) -> Duration {
        now().saturating_duration_since(self.started)
    }

    fn tell(&self, told: Told) {
        if self.queue.try_send(told).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }
}

impl Observer for Ear {
    fn acquired(&self, event: &Acquired<'_>) {
        self.tell(Told::Acquired {
            at: self.at(),
            id: event.id,
            waited: event.waited,
            site: event.site,
        });
    }

    fn released(&self, event: &Released<'_>) {
        self.tell(Told::Released {
            at: self.at(),
            id: event.id,
            held: event.held,
            site: event.site,
        });
    }

    fn detached(&self, event: &Detached<'_>) {
        self.tell(Told::Detached { id: event.id });
    }

    fn timed_out(&self, event: &AcquireTimedOut<'_>) {
        self.tell(Told::TimedOut {
            at: self.at(),
            waited: event.waited,
            site: event.site,
        });
    }

    fn refused(&self, _: &AcquireRefused<'_>) {
        self.refused.fetch_add(1, Relaxed);
    }

    fn opened(&self, event: &Opened<'_>) {
        self.tell(Told::Opened { took: event.took });
    }

    fn resized(&self, event: &Resized<'_>) {
        self.tell(Told::Resized { to: event.to });
    }
}

/// The thread.
struct Writer {
    ear: Arc<Ear>,
    pool: AnyPool,
    /// The counter of the pool when the recording began; it only grows.
    cancelled: u64,
    events: Receiver<Told>,
    start: Recorded,
    pairing: Pairing,
    records: Records,
    to: Sink,
    limit: u64,
    lasts: Duration,
    last_write: Instant,
}

impl Writer {
    fn run(mut self) -> io::Result<End> {
        let ended = self.write_all();
        let observer: Arc<dyn Observer> = Arc::clone(&self.ear) as _;
        self.pool.detach(&observer);
        self.end(ended?)
    }

    fn write_all(&mut self) -> io::Result<Stop> {
        self.to.write(&self.start.start())?;
        loop {
            // Read first, so that events from before it are in the queue.
            let stop = self.is_over();
            if let Some(limit) = self.drain()? {
                return Ok(limit);
            }
            if let Some(stop) = stop {
                return Ok(stop);
            }
            if self.last_write.elapsed() >= LATEST {
                let full = self.write()?;
                if full || self.pool.breaker_state().is_none() {
                    return Ok(if full { Stop::Limit } else { Stop::PoolGone });
                }
            }
            thread::park_timeout(PACE);
        }
    }

    fn is_over(&self) -> Option<Stop> {
        if self.ear.asked_to_stop.load(Relaxed) {
            return Some(Stop::Asked);
        }
        (self.ear.at() >= self.lasts).then_some(Stop::Time)
    }

    /// Writes what is queued. Returns why the recording ends if it is full.
    fn drain(&mut self) -> io::Result<Option<Stop>> {
        // Faster callers than this thread must not keep it here for ever.
        for told in self.events.try_iter().take(QUEUE) {
            self.pairing.add(told, &mut self.records);
            if self.records.is_full() {
                let block = self.records.take();
                if self.to.length + block.len() as u64 + END_LENGTH > self.limit {
                    return Ok(Some(Stop::Limit));
                }
                self.to.write(&block)?;
                self.last_write = now();
            }
        }
        Ok(None)
    }

    /// Writes the block that is not full. Returns whether the limit leaves no room for it.
    fn write(&mut self) -> io::Result<bool> {
        let block = self.records.take();
        if self.to.length + block.len() as u64 + END_LENGTH > self.limit {
            return Ok(true);
        }
        self.last_write = now();
        self.to.write(&block)?;
        Ok(false)
    }

    fn end(mut self, stop: Stop) -> io::Result<End> {
        // A full trace has no room for the leases that are out.
        let mut stop = stop;
        if stop != Stop::Limit {
            self.pairing.end(&mut self.records);
            if self.write()? {
                stop = Stop::Limit;
            }
        }
        let cancelled = self.pool.status().map_or(0, |status| status.cancelled);
        let end = End {
            stop,
            // As exact as it is written.
            lasted: Duration::from_micros(micros(self.ear.at())),
            lost: self.ear.lost.load(Relaxed) + self.pairing.lost,
            cancelled: cancelled.saturating_sub(self.cancelled),
            refused: self.ear.refused.load(Relaxed),
        };
        self.to.write(&end.block())?;
        Ok(end)
    }
}

/// Where the bytes go.
pub(super) struct Sink {
    to: To,
    length: u64,
}

pub(super) enum To {
    File(File),
    Other(Box<dyn Write + Send>),
}

impl Sink {
    pub(super) fn new(to: To) -> Self {
        Self { to, length: 0 }
    }

    /// Writes a block, or nothing of it: half a block would spoil the file.
    fn write(&mut self, block: &[u8]) -> io::Result<()> {
        match &mut self.to {
            To::File(file) => {
                if let Err(error) = file.write_all(block) {
                    // The first error is the one to report.
                    let _ = file.set_len(self.length);
                    return Err(error);
                }
            }
            To::Other(other) => {
                other.write_all(block)?;
                other.flush()?;
            }
        }
        self.length += block.len() as u64;
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this times what an observer hears"
)]
fn now() -> Instant {
    Instant::now()
}
