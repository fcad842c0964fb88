//! `max_size` holds in every race: the backend never has more resources, alive or being opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cenote::config::OnOpenError;
use cenote::{AcquireError, CloseReason, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, GatedManager, GatedPool, Rig};
use fastrand::Rng;

use crate::support::rigs::hold;

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);
const SECOND: Duration = Duration::from_secs(1);

/// The number of tasks in a storm.
const TASKS: u64 = 12;

/// The state that the tasks of a storm share.
struct Storm {
    rig: Rig,
    over: AtomicBool,
    /// Detached resources that are still alive, and how many may be at once.
    detached: AtomicUsize,
    most_detached: usize,
}

impl Storm {
    fn new(rig: Rig, most_detached: usize) -> Arc<Self> {
        Arc::new(Self {
            rig,
            over: AtomicBool::new(false),
            detached: AtomicUsize::new(0),
            most_detached,
        })
    }

    /// Runs many tasks on the pool, and calls `beside` meanwhile, until the time is over.
    async fn rage(self: &Arc<Self>, beside: impl Fn(&GatedPool, &mut Rng) + Send + 'static) {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut tasks = Vec::new();
        for nth in 0..TASKS {
            let storm = Arc::clone(self);
            let rng = Rng::with_seed(seed.wrapping_add(nth));
            tasks.push(tokio::spawn(async move { storm.one(rng).await }));
        }
        let storm = Arc::clone(self);
        let mut rng = Rng::with_seed(seed.wrapping_sub(1));
        tasks.push(tokio::spawn(async move {
            while !storm.over.load(Ordering::Relaxed) {
                storm.assert_consistent();
                beside(&storm.rig.pool, &mut rng);
                tokio::time::sleep(MS).await;
            }
        }));
        tokio::time::sleep(400 * MS).await;
        self.over.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await.expect("no task panics");
        }
    }

    async fn one(&self, mut rng: Rng) {
        while !self.over.load(Ordering::Relaxed) {
            let acquired = if rng.u8(..) < 128 {
                let limit = rng.u32(0..=2) * US;
                self.rig.pool.acquire_within(limit).await
            } else {
                self.rig.pool.acquire().await
            };
            match acquired {
                Ok(lease) => self.use_up(lease, &mut rng).await,
                Err(AcquireError::TimedOut(_) | AcquireError::Open { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            tokio::task::yield_now().await;
        }
    }

    async fn use_up(&self, mut lease: Lease<GatedManager>, rng: &mut Rng) {
        for _ in 0..rng.u8(0..4) {
            tokio::task::yield_now().await;
        }
        match rng.u8(0..16) {
            0 | 1 => Lease::discard(lease),
            2 | 3 => lease.broken = true,
            4..7 => lease.dirty = true,
            7 => Lease::release(lease).await,
            8 => {
                let _ = tokio::time::timeout(US, Lease::release(lease)).await;
            }
            9 => self.detach(lease).await,
            _ => drop(lease),
        }
    }

    async fn detach(&self, lease: Lease<GatedManager>) {
        let one_more = |living: usize| (living < self.most_detached).then_some(living + 1);
        let order = Ordering::SeqCst;
        if self.detached.fetch_update(order, order, one_more).is_err() {
            return;
        }
        let thing = Lease::detach(lease);
        tokio::task::yield_now().await;
        drop(thing);
        self.detached.fetch_sub(1, order);
    }

    fn assert_consistent(&self) {
        let status = self.rig.pool.status();
        let parts =
            status.idle + status.in_use + status.opening + status.cleaning + status.checking;
        assert_eq!(status.total, parts, "{status:?}");
    }

    /// Asserts that the cap was kept and nothing was lost.
    async fn assert_over(&self, cap: usize) {
        let peak = self.rig.backend.peak();
        assert!(peak <= cap + self.most_detached, "{peak} at once, of {cap}");
        let leases = hold(&self.rig, self.rig.pool.status().max_size).await;
        let status = self.rig.pool.status();
        assert_eq!((status.in_use, status.waiting), (leases.len(), 0));
        assert_eq!(self.rig.backend.alive(), leases.len());
        let gone = status.closes.total() + status.detached;
        assert_eq!(status.opened - gone, status.in_use as u64);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn max_size_holds_while_leases_are_held_discarded_broken_and_cancelled() {
    let storm = Storm::new(Rig::with_max_size(3), 0);

    storm.rage(|_, _| ()).await;

    storm.assert_over(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn max_size_holds_while_leases_are_detached() {
    let storm = Storm::new(Rig::with_max_size(3), 2);

    storm.rage(|_, _| ()).await;

    assert!(storm.rig.pool.status().detached > 0);
    storm.assert_over(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn max_size_holds_while_it_changes_and_all_is_invalidated() {
    let rig = Rig::new(|pool| pool.max_size(5).check_after_idle(Duration::ZERO));
    let storm = Storm::new(rig, 0);

    storm
        .rage(|pool, rng| match rng.u8(0..4) {
            0 => pool.invalidate(),
            1 => pool.retain(|thing| thing.serial % 2 == 0),
            2 => pool.invalidate_over(3 * MS),
            _ => pool.resize(rng.usize(1..=5)).unwrap(),
        })
        .await;

    storm.assert_over(5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn max_size_holds_while_opening_fails_and_is_tried_again() {
    let rig = Rig::new(|pool| {
        pool.max_size(3)
            .min_size(2)
            .min_idle(1)
            .on_open_error(OnOpenError::Retry)
    });
    let backend = Arc::clone(&rig.backend);
    let storm = Storm::new(rig, 0);

    storm
        .rage(move |_, rng| {
            let gates = [
                Gate::Fail,
                Gate::Panic,
                Gate::Slow(MS),
                Gate::Slow(200 * US),
            ];
            for _ in 0..3 {
                backend.once(Call::Open, gates[rng.usize(..gates.len())]);
            }
        })
        .await;

    storm.rig.backend.heal();
    storm.assert_over(3).await;
}

/// Callers that come and go at random, in virtual time, and break this fraction of their leases.
async fn bustle(rig: &Rig, seed: u64, broken: f64, lasting: Duration) {
    let mut tasks = Vec::new();
    for nth in 0..6 {
        let pool = rig.pool.clone();
        let mut rng = Rng::with_seed(seed + nth);
        tasks.push(tokio::spawn(async move {
            loop {
                let Ok(mut lease) = pool.acquire_within(rng.u32(0..300) * MS).await else {
                    continue;
                };
                tokio::time::sleep(rng.u32(0..200) * MS).await;
                lease.dirty = rng.bool();
                lease.broken = rng.f64() < broken;
                drop(lease);
                tokio::time::sleep(rng.u32(0..400) * MS).await;
            }
        }));
    }
    tokio::time::sleep(lasting).await;
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        let ended = task.await.map(|()| unreachable!("it loops"));
        assert!(ended.is_err_and(|e| e.is_cancelled()), "seed {seed}");
    }
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn max_size_holds_during_refill() {
    for seed in 0..5 {
        let rig = Rig::new(|pool| pool.max_size(4).min_size(4).min_idle(3));
        rig.backend.always(Call::Open, Gate::Slow(30 * MS));
        rig.backend.always(Call::Close, Gate::Slow(20 * MS));

        bustle(&rig, seed, 0.25, 20 * SECOND).await;

        assert!(rig.backend.peak() <= 4, "seed {seed}");
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn max_size_holds_during_the_heartbeat() {
    for seed in 0..5 {
        let rig = Rig::new(|pool| {
            pool.max_size(4)
                .min_size(3)
                .heartbeat_interval(100 * MS)
                .check_timeout(150 * MS)
        });
        for _ in 0..20 {
            rig.backend.once(Call::Check, Gate::Slow(40 * MS));
            rig.backend.once(Call::Check, Gate::Fail);
            rig.backend.once(Call::Check, Gate::Hang);
        }
        rig.backend.always(Call::Close, Gate::Slow(20 * MS));

        bustle(&rig, seed, 0.25, 20 * SECOND).await;
        advance(10 * SECOND).await;

        assert!(rig.pool.status().closes.by(CloseReason::FailedCheck) > 10);
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn max_size_holds_when_replacements_are_opened_before_the_old_are_closed() {
    for max_size in [2, 3] {
        let rig = Rig::new(|pool| pool.max_size(max_size).min_size(2).max_lifetime(SECOND));
        rig.backend.always(Call::Open, Gate::Slow(30 * MS));
        rig.backend.always(Call::Close, Gate::Slow(50 * MS));
        rig.pool.warm().await.unwrap();

        bustle(&rig, 7, 0.0, 30 * SECOND).await;

        assert!(rig.pool.status().closes.by(CloseReason::Lifetime) > 10);
        assert!(rig.backend.peak() <= max_size);
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_resource_counts_until_its_close_is_done() {
    let rig = Rig::with_max_size(2);
    let both = (rig.acquire().await, rig.acquire().await);
    drop(both);
    rig.backend.always(Call::Close, Gate::Slow(100 * MS));

    rig.pool.invalidate();
    let (one, two) = tokio::join!(rig.pool.acquire(), rig.pool.acquire());

    assert_eq!((one.unwrap().serial, two.unwrap().serial), (3, 4));
    assert_eq!(rig.backend.peak(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_close_that_hangs_gives_its_room_back_in_the_end() {
    let rig = Rig::new(|pool| pool.max_size(1).close_timeout(2 * SECOND));
    rig.backend.once(Call::Close, Gate::Hang);
    Lease::discard(rig.acquire().await);

    let lease = rig.acquire().await;

    assert_eq!(lease.serial, 2);
    assert_eq!(rig.backend.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_shrank_opens_nothing_until_enough_leases_are_returned() {
    let rig = Rig::with_max_size(4);
    let mut leases = hold(&rig, 4).await;

    rig.pool.resize(2).unwrap();
    for left in [3, 2] {
        Lease::discard(leases.pop().unwrap());
        let told = rig.pool.acquire_within(10 * MS).await;
        assert!(matches!(told, Err(AcquireError::TimedOut(_))));
        assert_eq!((rig.backend.alive(), rig.pool.status().total), (left, left));
    }
    Lease::discard(leases.pop().unwrap());

    assert_eq!(rig.acquire().await.serial, 5);
    assert_eq!(rig.backend.peak(), 4);
}
