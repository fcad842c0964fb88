//! The pools that are soaked: limits of milliseconds, so that everything is recycled all the time.

use std::fmt;
use std::future::Future;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Waker};
use std::time::Duration;

use cenote::{
    Builder, ConsecutiveFailures, IdleOrder, Nested, OnOpenError, Pool, Status, WeakPool,
};

use super::resource::{Alive, Flaky};

pub(super) const MS: Duration = Duration::from_millis(1);

/// Of the pools that last: `plain`, `pipes` and `narrow`.
const SIZES: [usize; 3] = [16, 8, 1];

const CROWD: usize = 1_000;

/// How many make pools of their own.
pub(super) const MAKERS: usize = 4;

pub(super) type Soaked = Pool<Flaky>;

/// Those that live from the first round to the last, and what all others leave behind: how many resources live, and what was done.
pub(super) struct Pools {
    pub(super) lasting: Vec<Soaked>,
    /// The last one of each who makes others, for one who asks why nobody goes on.
    brief: [Mutex<Option<WeakPool<Flaky>>>; MAKERS],
    pub(super) alive: Alive,
    tally: Mutex<Tally>,
}

/// What was done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pools made.
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
        crowd(&alive);
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
        Self {
            lasting: vec![build(plain), build(pipes), build(narrow)],
            brief: Default::default(),
            alive,
            tally: Mutex::default(),
        }
    }

    /// One of those that last.
    pub(super) fn any(&self) -> &Soaked {
        &self.lasting[fastrand::usize(..self.lasting.len())]
    }

    /// One for a short while.
    pub(super) fn another(&self, maker: usize) -> Soaked {
        let pool = build(brief(fastrand::bool(), &self.alive).max_size(fastrand::usize(1..4)));
        *lock(&self.brief[maker]) = Some(pool.downgrade());
        pool
    }

    /// One of those is about to go.
    pub(super) fn farewell(&self, pool: &Soaked) {
        let status = pool.status();
        lock(&self.tally).add(&status);
    }

    /// All that was done, by those that are gone and by those that last.
    pub(super) fn total(&self) -> Tally {
        let mut total = *lock(&self.tally);
        for pool in &self.lasting {
            total.add(&pool.status());
        }
        total
    }

    /// Back to normal after what the governor did, and then empty: everything is closed, and nothing is opened any more.
    pub(super) fn empty(&self) {
        self.brief.iter().for_each(|last| *lock(last) = None);
        for (pool, size) in self.lasting.iter().zip(SIZES) {
            pool.resize(size).expect("it was built with this size");
            pool.resume();
            pool.activate();
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

    /// The next round begins.
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

/// Everything lasts for milliseconds.
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

/// More wait here than ever will at once. Mailboxes are never freed, only passed on to the next pool: all that there will be are made now.
fn crowd(alive: &Alive) {
    let pool = build(brief(false, alive));
    pool.suspend();
    let mut waiting: Vec<_> = (0..CROWD).map(|_| Box::pin(pool.acquire())).collect();
    let mut context = Context::from_waker(Waker::noop());
    for acquiring in &mut waiting {
        let served = acquiring.as_mut().poll(&mut context).is_ready();
        assert!(!served, "a suspended pool lends nothing");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it is held")
}

fn build(builder: Builder<Flaky>) -> Soaked {
    builder.build().expect("these settings are valid")
}
