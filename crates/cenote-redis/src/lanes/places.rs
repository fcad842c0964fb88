//! Places: the right to have one command in flight. Callers that find none wait in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};
use tokio::time::timeout_at;

use crate::error::{lanes_full, queue_full};

pub(super) struct Places {
    free: Semaphore,
    count: usize,
    lanes: usize,
    waiting: AtomicUsize,
    max_waiters: Option<usize>,
}

/// Why a caller got no place.
pub(super) enum NoPlace {
    /// They were closed with the pool.
    Closed,
    /// The text says what was seen.
    Full(redis::RedisError),
}

impl Places {
    pub(super) fn new(lanes: usize, depth: usize, max_waiters: Option<usize>) -> Self {
        // More than a semaphore takes is as good as no limit.
        let count = lanes.saturating_mul(depth).min(Semaphore::MAX_PERMITS);
        Self {
            free: Semaphore::new(count),
            count,
            lanes,
            waiting: AtomicUsize::new(0),
            max_waiters,
        }
    }

    /// Takes a place that is free, without waiting. Returns none while callers wait.
    pub(super) fn try_take(&self) -> Option<SemaphorePermit<'_>> {
        self.free.try_acquire().ok()
    }

    /// Waits for a place, first come, first served. `limit` is what the deadline was made of.
    pub(super) async fn take(
        &self,
        pool: &str,
        deadline: Option<Instant>,
        limit: Option<Duration>,
    ) -> Result<SemaphorePermit<'_>, NoPlace> {
        let waiting = Waiting::new(&self.waiting);
        if self.max_waiters.is_some_and(|most| waiting.before >= most) && !self.free.is_closed() {
            let text = format!("{}: shed load or raise `max_waiters`", self.report(pool));
            return Err(NoPlace::Full(queue_full(text)));
        }
        let closed = |_: AcquireError| NoPlace::Closed;
        let take = self.free.acquire();
        let Some(deadline) = deadline else {
            return take.await.map_err(closed);
        };
        match timeout_at(deadline.into(), take).await {
            Ok(taken) => taken.map_err(closed),
            Err(_) => {
                let limit = limit.unwrap_or_default();
                let text = format!(
                    "{}, none came free within {limit:.1?}: the server is slow, or raise \
                     `lane_depth` or `mux`",
                    self.report(pool)
                );
                Err(NoPlace::Full(lanes_full(text)))
            }
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Tells all callers that wait.
    pub(super) fn close(&self) {
        self.free.close();
    }

    fn report(&self, pool: &str) -> String {
        let taken = self.count - self.free.available_permits();
        format!(
            "pool `{pool}`: {taken} of {} commands in flight on {} lanes, {} waiting",
            self.count,
            self.lanes,
            self.waiting()
        )
    }
}

/// A caller that waits, for as long as this is there.
struct Waiting<'a> {
    count: &'a AtomicUsize,
    /// How many waited already.
    before: usize,
}

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        let before = count.fetch_add(1, Ordering::Relaxed);
        Self { count, before }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
