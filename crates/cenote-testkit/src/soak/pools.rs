//! The pools of the soak. Their limits are milliseconds, so that everything is recycled all the
//! time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use cenote::breaker::ConsecutiveFailures;
use cenote::config::{IdleOrder, Nested, OnOpenError};
use cenote::event::Released;
use cenote::{Builder, Observer, Pool, Status, WeakPool};

use super::resource::{Alive, Flaky};
use super::timely::Stopwatch;

pub(super) const MS: Duration = Duration::from_millis(1);

/// The sizes of the lasting pools `plain`, `pipes`, `narrow` and `watched`.
const SIZES: [usize; 4] = [16, 8, 1, 2];

/// How many tasks and threads build pools of their own.
pub(super) const MAKERS: usize = 6;

pub(super) type Soaked = Pool<Flaky>;

/// The pools that live from the first round to the last, and the counts of all others.
pub(super) struct Pools {
    pub(super) lasting: Vec<Soaked>,
    /// The last pool of each maker, for the report of a soak that hangs.
    brief: [Mutex<Option<WeakPool<Flaky>>>; MAKERS],
    pub(super) alive: Alive,
    pub(super) watch: Stopwatch,
    tally: Mutex<Tally>,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pools built.
    pub pools: u64,
    /// Leases handed out.
    pub acquired: u64,
    /// Acquires that ran out of time.
    pub timed_out: u64,
    /// Acquires that were dropped while they waited.
    pub cancelled: u64,
    /// Resources opened.
    pub opened: u64,
    /// Opens that failed.
    pub open_failed: u64,
    /// Acquires that an inactive breaker refused.
    pub unavailable: u64,
    /// Acquires that a closed pool refused.
    pub closed: u64,
    /// By how much the latest acquire missed its deadline.
    pub latest: Duration,
}

impl Tally {
    fn add(&mut self, status: &Status) {
        self.pools += 1;
        self.acquired += status.acquired;
        self.timed_out += status.timed_out;
        self.cancelled += status.cancelled;
        self.opened += status.opened;
        self.open_failed += status.open_failed;
    }
}

impl Pools {
    pub(super) fn new() -> Self {
        let alive = Alive::default();
        let plain = brief(false, &alive)
            .name("plain")
            .max_size(SIZES[0])
            .min_size(1)
            .check_after_idle(MS);
        let pipes = brief(true, &alive)
            .name("pipes")
            .max_size(SIZES[1])
            .min_idle(2)
            .on_open_error(OnOpenError::Retry)
            .idle_order(IdleOrder::Oldest)
            .check_on_return(true)
            .before_acquire(async |_: &mut _| fastrand::u8(..) > 2)
            .before_release(async |_: &mut _| fastrand::u8(..) > 2);
        let narrow = brief(true, &alive)
            .name("narrow")
            .max_size(SIZES[2])
            .max_waiters(8)
            .nested(Nested::Deny)
            .breaker(ConsecutiveFailures::new(3).recover_after(MS, 4 * MS));
        let watched = brief(false, &alive)
            .name("watched")
            .max_size(SIZES[3])
            .observer(Arc::new(Slow));
        Self {
            lasting: vec![build(plain), build(pipes), build(narrow), build(watched)],
            brief: Default::default(),
            alive,
            watch: Stopwatch::default(),
            tally: Mutex::default(),
        }
    }

    /// Returns one of the lasting pools.
    pub(super) fn any(&self) -> &Soaked {
        &self.lasting[fastrand::usize(..self.lasting.len())]
    }

    /// Builds a pool that lives for a short while.
    pub(super) fn another(&self, maker: usize) -> Soaked {
        let pool = build(brief(fastrand::bool(), &self.alive).max_size(fastrand::usize(1..4)));
        *lock(&self.brief[maker]) = Some(pool.downgrade());
        pool
    }

    /// Builds a pool for a duel.
    pub(super) fn duel(&self, maker: usize) -> Soaked {
        let mut builder = brief(false, &self.alive).max_size(1);
        if fastrand::u8(0..4) > 0 {
            builder = builder.observer(Arc::new(Slow));
        }
        let pool = build(builder);
        *lock(&self.brief[maker]) = Some(pool.downgrade());
        pool
    }

    /// Adds the counts of a pool that is about to go.
    pub(super) fn farewell(&self, pool: &Soaked) {
        let status = pool.status();
        lock(&self.tally).add(&status);
    }

    /// Returns the counts of all pools, past and present.
    pub(super) fn total(&self) -> Tally {
        let mut total = *lock(&self.tally);
        for pool in &self.lasting {
            total.add(&pool.status());
        }
        (total.unavailable, total.closed) = self.watch.refused();
        total.latest = self.watch.latest();
        total
    }

    /// Undoes the controls of the whole pools, and then empties them: every resource is closed, and
    /// none is opened any more.
    pub(super) fn empty(&self) {
        self.brief.iter().for_each(|last| *lock(last) = None);
        for (pool, size) in self.lasting.iter().zip(SIZES) {
            pool.resize(size).expect("it was built with this size");
            pool.resume();
            pool.breaker().reset();
            pool.pause_upkeep();
            pool.invalidate();
        }
    }

    pub(super) fn are_empty(&self) -> bool {
        self.lasting.iter().all(|pool| {
            let status = pool.status();
            status.total + status.closing + status.waiting == 0
        })
    }

    /// Begins the next round.
    pub(super) fn refill(&self) {
        self.lasting.iter().for_each(Pool::resume_upkeep);
    }
}

impl fmt::Debug for Pools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brief = self.brief.each_ref().map(|last| lock(last).clone());
        let brief: Vec<_> = brief.iter().flatten().map(WeakPool::upgrade).collect();
        f.debug_struct("Pools")
            .field("lasting", &self.lasting)
            .field("brief", &brief)
            .field("alive", &self.alive)
            .finish_non_exhaustive()
    }
}

/// Builds a pool whose limits are milliseconds.
fn brief(with_pipe: bool, alive: &Alive) -> Builder<Flaky> {
    let alive = alive.clone();
    Pool::builder(Flaky { with_pipe, alive })
        .acquire_timeout(50 * MS)
        .open_timeout(20 * MS)
        .check_timeout(10 * MS)
        .clean_timeout(10 * MS)
        .close_timeout(10 * MS)
        .idle_timeout(3 * MS)
        .max_lifetime(8 * MS)
        .lifetime_jitter(0.5)
        .max_uses(50)
        .heartbeat_interval(2 * MS)
        .leak_after(MS)
        .upkeep_interval(20 * MS)
}

/// An observer that is slow at some returns, and so holds up the thread that returns.
#[derive(Debug)]
struct Slow;

impl Observer for Slow {
    fn released(&self, _: &Released<'_>) {
        if fastrand::bool() {
            thread::sleep(MS.mul_f64(3.0 * fastrand::f64()));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it is held")
}

fn build(builder: Builder<Flaky>) -> Soaked {
    builder.build().expect("these settings are valid")
}
