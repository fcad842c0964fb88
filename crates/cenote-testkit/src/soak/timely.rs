//! Acquires under a stopwatch: each must end by its deadline, with some time added for a machine
//! that is busy.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cenote::{AcquireError, Lease};
use tokio::time::timeout;

use super::now;
use super::pools::Soaked;
use super::resource::Flaky;
use crate::backend::Fault;

pub(super) type Acquired = Result<Lease<Flaky>, AcquireError<Fault>>;

/// Far longer than a task of a busy machine waits for its turn.
const MARGIN: Duration = Duration::from_secs(2);

/// More than a reader needs.
const KEPT: usize = 8;

/// What the acquires of all rounds came to.
#[derive(Debug, Default)]
pub(super) struct Stopwatch {
    late: Mutex<Vec<String>>,
    /// In microseconds after its deadline.
    latest: AtomicU64,
    unavailable: AtomicU64,
    closed: AtomicU64,
}

impl Stopwatch {
    /// Awaits an acquire that must end within `limit`. `None`: it did not, and never may. It is
    /// told at once.
    pub(super) async fn time(
        &self,
        pool: &Soaked,
        what: &'static str,
        limit: Duration,
        acquiring: impl Future<Output = Acquired>,
    ) -> Option<Acquired> {
        let since = now();
        let acquired = timeout(limit + MARGIN, acquiring).await.ok();
        self.judge(pool, what, since, limit);
        if let Some(acquired) = &acquired {
            self.count(acquired);
        }
        acquired
    }

    /// The same for a thread.
    pub(super) fn time_blocking(
        &self,
        pool: &Soaked,
        limit: Duration,
        acquire: impl FnOnce() -> Acquired,
    ) -> Acquired {
        let since = now();
        let acquired = acquire();
        self.judge(pool, "blocks", since, limit);
        self.count(&acquired);
        acquired
    }

    fn judge(&self, pool: &Soaked, what: &'static str, since: Instant, limit: Duration) {
        let over = since.elapsed().saturating_sub(limit);
        let micros = u64::try_from(over.as_micros()).unwrap_or(u64::MAX);
        self.latest.fetch_max(micros, Ordering::Relaxed);
        if over < MARGIN {
            return;
        }
        let told = format!("{what}: an acquire of {limit:?} took {over:?} more: {pool:?}");
        eprintln!("LATE: {told}");
        let mut late = self.late();
        if late.len() < KEPT {
            late.push(told);
        }
    }

    fn count(&self, acquired: &Acquired) {
        let count = match acquired {
            Err(AcquireError::Unavailable { .. }) => &self.unavailable,
            Err(AcquireError::Closed { .. }) => &self.closed,
            _ => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The acquires that ended too late, or not at all.
    pub(super) fn late_ones(&self) -> Vec<String> {
        self.late().clone()
    }

    /// By how much the latest acquire missed its deadline.
    pub(super) fn latest(&self) -> Duration {
        Duration::from_micros(self.latest.load(Ordering::Relaxed))
    }

    /// How many were refused by an inactive breaker, and by a closed pool.
    pub(super) fn refused(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.unavailable), read(&self.closed))
    }

    fn late(&self) -> MutexGuard<'_, Vec<String>> {
        self.late.lock().expect("nothing panics while it is held")
    }
}
