//! The resources of every pool in the benchmarks. They cost nothing to use, and their backend
//! counts them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The manager of every pool. Each adapter implements its pool's own trait for it.
#[derive(Clone, Debug, Default)]
pub struct Backend {
    census: Arc<Census>,
    connect: Duration,
}

/// Counts of things. A thing counts from the moment when its connect begins, as it does for a
/// server.
#[derive(Debug, Default)]
pub struct Census {
    begun: AtomicUsize,
    alive: AtomicUsize,
    peak: AtomicUsize,
}

/// A resource. It is counted as long as it lives.
#[derive(Debug)]
pub struct Thing {
    census: Arc<Census>,
}

/// The error type of connects. No connect fails here, but pools need a type.
#[derive(Clone, Copy, Debug)]
pub struct Refused;

impl Backend {
    /// Makes a backend whose connects take this long.
    pub fn new(connect: Duration) -> Self {
        let census = Arc::default();
        Self { census, connect }
    }

    /// Returns a new thing, after the time of a connect.
    pub async fn connect(&self) -> Thing {
        let thing = Census::admit(&self.census);
        if !self.connect.is_zero() {
            tokio::time::sleep(self.connect).await;
        }
        thing
    }

    /// The same, for a pool that opens its resources on threads.
    pub fn connect_blocking(&self) -> Thing {
        let thing = Census::admit(&self.census);
        if !self.connect.is_zero() {
            thread::sleep(self.connect);
        }
        thing
    }

    /// Returns the counts of its things.
    pub fn census(&self) -> &Census {
        &self.census
    }
}

impl Census {
    fn admit(census: &Arc<Self>) -> Thing {
        census.begun.fetch_add(1, Ordering::Relaxed);
        let alive = census.alive.fetch_add(1, Ordering::Relaxed) + 1;
        census.peak.fetch_max(alive, Ordering::Relaxed);
        Thing {
            census: Arc::clone(census),
        }
    }

    /// Returns how many connects were begun.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Returns the largest number of things that existed at the same time.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.census.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused")
    }
}

impl Error for Refused {}

impl From<&str> for Refused {
    fn from(_: &str) -> Self {
        Self
    }
}
