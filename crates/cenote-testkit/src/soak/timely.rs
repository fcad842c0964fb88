//! Acquires under a stopwatch. Each must end by its deadline, plus a margin for a busy machine.

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

/// Far longer than a task waits for its turn on a busy machine.
const MARGIN: Duration = Duration::from_secs(2);

/// How many late acquires are reported. A reader needs few.
const KEPT: usize = 8;

/// The ends of the acquires of all rounds.
#[derive(Debug, Default)]
pub(super) struct Stopwatch {
    late: Mutex<Vec<String>>,
    /// Microseconds after the deadline.
    latest: AtomicU64,
    unavailable: AtomicU64,
    closed: AtomicU64,
}

impl Stopwatch {
    /// Awaits an acquire that must end within `limit`. Returns `None`, and notes it at once, if the
    /// acquire does not end in time.
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

    /// The same for an acquire that blocks a thread.
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

    /// Returns the acquires that ended too late or not at all.
    pub(super) fn late_ones(&self) -> Vec<String> {
        self.late().clone()
    }

    /// Returns by how much the latest acquire missed its deadline.
    pub(super) fn latest(&self) -> Duration {
        Duration::from_micros(self.latest.load(Ordering::Relaxed))
    }

    /// Returns how many acquires an inactive breaker and a closed pool refused.
    pub(super) fn refused(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.unavailable), read(&self.closed))
    }

    fn late(&self) -> MutexGuard<'_, Vec<String>> {
        self.late.lock().expect("nothing panics while it is held")
    }
}
