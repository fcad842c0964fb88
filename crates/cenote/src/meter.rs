//! A meter of use: how much of the time that a lease is held its resource works.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::rt::sync::{AtomicU64, Ordering};
use crate::time::{Clock, Moment};

/// The meter is not running.
const IDLE: u64 = 0;

/// Measures how long a resource works while it is lent, so that a slow operation and a forgotten
/// lease look different in reports. The resource has the meter, and its code starts and stops it.
/// [`Lease::label_metered`](crate::Lease::label_metered) shows it.
///
/// A start or a stop costs some nanoseconds. The clock is that of the kernel's ticks, so a single
/// reading is right to some milliseconds, and sums are right.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
/// use std::time::Duration;
/// use cenote::status::Meter;
///
/// let (lease, meter) = (pool.acquire().await?, Meter::new("in statements"));
/// cenote::Lease::label_metered(&lease, "SELECT 1", &meter);
/// meter.start();
/// tokio::time::sleep(Duration::from_millis(300)).await;
/// meter.stop();
/// tokio::time::sleep(Duration::from_secs(12)).await;
///
/// let holder = &pool.leases()[0];
/// assert_eq!(holder.used.unwrap().time, Duration::from_millis(300));
/// let shown = holder.to_string();
/// assert!(shown.contains("for 12.3s, 300.0ms of it in statements"), "{shown}");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Meter(Arc<Reading>);

#[derive(Debug)]
struct Reading {
    what: &'static str,
    clock: Clock,
    /// The nanoseconds of the parts that are over.
    sum: AtomicU64,
    /// When the present part began, in nanoseconds, or [`IDLE`].
    since: AtomicU64,
}

impl Meter {
    /// Makes a meter that stands at zero. `what` says what is measured: "in statements".
    pub fn new(what: &'static str) -> Self {
        Self(Arc::new(Reading {
            what,
            clock: Clock::new(false),
            sum: AtomicU64::new(0),
            since: AtomicU64::new(IDLE),
        }))
    }

    /// Starts it, unless it runs.
    pub fn start(&self) {
        if self.0.since.load(Ordering::Relaxed) == IDLE {
            self.0.since.store(self.now(), Ordering::Relaxed);
        }
    }

    /// Stops it, if it runs.
    pub fn stop(&self) {
        let since = self.0.since.load(Ordering::Relaxed);
        if since != IDLE {
            let part = self.now().saturating_sub(since);
            self.0.sum.fetch_add(part, Ordering::Relaxed);
            self.0.since.store(IDLE, Ordering::Relaxed);
        }
    }

    /// Stops it and sets it to zero, for the next lease.
    pub fn reset(&self) {
        self.0.since.store(IDLE, Ordering::Relaxed);
        self.0.sum.store(0, Ordering::Relaxed);
    }

    /// Returns what it shows now.
    pub fn read(&self) -> Used {
        self.read_at(self.0.clock.coarse_now())
    }

    pub(crate) fn read_at(&self, now: Moment) -> Used {
        let running = match self.0.since.load(Ordering::Relaxed) {
            IDLE => 0,
            since => nanoseconds(now).saturating_sub(since),
        };
        let sum = self.0.sum.load(Ordering::Relaxed);
        Used {
            time: Duration::from_nanos(sum.saturating_add(running)),
            what: self.0.what,
        }
    }

    fn now(&self) -> u64 {
        nanoseconds(self.0.clock.coarse_now())
    }
}

/// Returns a number that is not [`IDLE`].
fn nanoseconds(moment: Moment) -> u64 {
    moment.nanoseconds_since(Moment::PAST).max(IDLE + 1)
}

/// How long a resource worked while it was held. [`Meter`] has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Used {
    /// The time.
    pub time: Duration,
    /// At what: "in statements".
    pub what: &'static str,
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1?} of it {}", self.time, self.what)
    }
}
