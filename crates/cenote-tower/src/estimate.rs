//! How long a request would wait for a pool, estimated from the pace at which resources come back.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use cenote::{Manager, Pool, Status, registry};

/// How often the status of the pool is read: it takes the lock of the pool, so requests share it.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The pace of the returns is measured over the last one to two of these intervals.
const PACE_OVER: Duration = Duration::from_secs(1);

/// The pool, and the estimate of its queue.
pub(crate) struct Estimate {
    look: Box<dyn Fn() -> Option<Status> + Send + Sync>,
    queue: Mutex<Queue>,
}

impl Estimate {
    /// The queue of the pool itself. Its annex has a queue of its own.
    pub(crate) fn of<M: Manager + 'static>(pool: &Pool<M>) -> Self {
        let pool = pool.clone();
        Self::by(move || {
            let mut status = pool.status();
            if let Some(annex) = pool.annex() {
                let annex = annex.status();
                status.waiting = status.waiting.saturating_sub(annex.waiting);
                status.released = status.released.saturating_sub(annex.released);
            }
            Some(status)
        })
    }

    fn by(look: impl Fn() -> Option<Status> + Send + Sync + 'static) -> Self {
        Self {
            look: Box::new(look),
            queue: Mutex::default(),
        }
    }

    /// Returns how long a new request would wait.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        {
            let mut queue = self.lock();
            if !queue.is_due(now) {
                return queue.wait;
            }
        }
        let seen = (self.look)().unwrap_or_default();
        let mut queue = self.lock();
        queue.update(now, seen.waiting, seen.released);
        queue.wait
    }

    /// Returns how long a request would wait behind so many others.
    fn wait_behind(&self, waiting: usize, now: Instant) -> Duration {
        self.wait(now);
        self.lock().wait_behind(waiting)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The estimates of the pools whose errors were met, by the names of the pools.
#[derive(Clone, Default)]
pub(crate) struct Estimates {
    known: Arc<RwLock<Vec<Known>>>,
}

struct Known {
    pool: String,
    estimate: Arc<Estimate>,
}

impl Estimates {
    /// Measures this pool from now on.
    pub(crate) fn add(&self, name: &str, estimate: Estimate) -> Arc<Estimate> {
        let estimate = Arc::new(estimate);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.push(Known {
            pool: name.to_owned(),
            estimate: Arc::clone(&estimate),
        });
        estimate
    }

    /// Measures the pace of the known pools. To be called for every request: a pool with a queue
    /// has requests.
    pub(crate) fn look(&self) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return;
        }
        let now = now();
        for known in &*known {
            known.estimate.wait(now);
        }
    }

    /// Returns how long a request would wait in this line.
    pub(crate) fn wait(&self, line: &Line) -> Option<Duration> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|known| known.pool == line.pool);
        let found = found.map(|known| Arc::clone(&known.estimate));
        drop(known);
        let estimate = match found {
            Some(estimate) => estimate,
            None => {
                let pool = registry::pools();
                let pool = pool.into_iter().find(|pool| pool.name() == line.pool)?;
                self.add(&line.pool, Estimate::by(move || pool.status()))
            }
        };
        Some(estimate.wait_behind(line.waiting, now()))
    }
}

impl fmt::Debug for Estimates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Estimates").finish_non_exhaustive()
    }
}

/// The line of a pool when a caller was not served.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) pool: String,
    pub(crate) waiting: usize,
}

/// The estimate of the queue: plain data that is given the time.
#[derive(Default)]
struct Queue {
    looked: Option<Instant>,
    /// The start of the interval that the pace is measured over, and of the next one.
    from: Option<Mark>,
    next: Option<Mark>,
    wait: Duration,
    /// The time between two returns, while there was a queue.
    pace: Duration,
}

#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    released: u64,
}

impl Queue {
    /// Returns whether the caller must read the status of the pool now.
    fn is_due(&mut self, now: Instant) -> bool {
        let looked = self.looked.map(|at| now.saturating_duration_since(at));
        let due = looked.is_none_or(|ago| ago >= LOOK_EVERY);
        if due {
            self.looked = Some(now);
        }
        due
    }

    fn update(&mut self, now: Instant, waiting: usize, released: u64) {
        let here = Mark { at: now, released };
        if waiting == 0 {
            (self.from, self.next, self.wait) = (None, None, Duration::ZERO);
            return;
        }
        let from = *self.from.get_or_insert(here);
        let next = *self.next.get_or_insert(here);
        let took = now.saturating_duration_since(from.at);
        // If none came back yet, the next one comes back now at the earliest.
        let returns = released.saturating_sub(from.released).max(1);
        let pace = took.as_secs_f64() / returns as f64;
        let pace = Duration::try_from_secs_f64(pace).unwrap_or(Duration::MAX);
        self.wait = behind(waiting, pace);
        // At the beginning of a queue, the pace of the queue before it is the best guess.
        if !took.is_zero() {
            self.pace = pace;
        }
        if now.saturating_duration_since(next.at) >= PACE_OVER {
            (self.from, self.next) = (Some(next), Some(here));
        }
    }

    fn wait_behind(&self, waiting: usize) -> Duration {
        behind(waiting, self.pace)
    }
}

/// Returns the wait behind so many others, if one is served after each `pace`.
fn behind(waiting: usize, pace: Duration) -> Duration {
    let wait = pace.as_secs_f64() * (waiting as f64 + 1.0);
    Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban is for the core; this measures its pace from outside"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
