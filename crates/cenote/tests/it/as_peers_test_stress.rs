//! Stress on real threads, as puddle, Vert.x and Agroal do it: at the end nothing is lost, no
//! caller is stuck, and each was answered exactly once.

use std::collections::HashSet;
use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::{AcquireError, Lease, Manager, OpenError, Pool};
use cenote_testkit::{GatedManager, Rig, cut};
use fastrand::Rng;
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

/// Longer than any test here takes, on any machine.
const LONG: Duration = Duration::from_secs(120);

/// The number of acquires in a storm. `CENOTE_STORM=600000` makes it a long one.
fn storm_size() -> usize {
    let told = env::var("CENOTE_STORM").ok();
    told.map_or(60_000, |size| {
        size.parse().expect("CENOTE_STORM is a number")
    })
}

/// puddle, cancellation storm: 64 tasks on 8 resources, most acquires dropped at a random point.
/// Each has 60 s and none may need them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn puddle_cancellation_storm_loses_nothing() {
    const TASKS: usize = 64;
    let rig = Arc::new(Rig::with_max_size(8));
    let mut tasks = JoinSet::new();
    for seed in 0..TASKS {
        let rig = Arc::clone(&rig);
        tasks.spawn(async move {
            let mut dice = Rng::with_seed(seed as u64);
            for _ in 0..storm_size() / TASKS {
                let acquiring = rig.pool.acquire_within(LONG);
                let polls = dice.usize(0..8);
                let acquired = if polls < 4 {
                    cut(polls, acquiring).await
                } else {
                    Some(acquiring.await)
                };
                if let Some(lease) = acquired {
                    let lease = lease.expect("no caller is stuck");
                    if dice.bool() {
                        yield_now().await;
                    }
                    drop(lease);
                }
            }
        });
    }

    timeout(LONG, tasks.join_all()).await.expect("stuck");

    let status = rig.pool.status();
    assert_eq!((status.in_use, status.waiting), (0, 0), "{status:#?}");
    assert_eq!(status.acquired, status.released);
    assert!(status.cancelled > 0 && status.timed_out == 0);
    assert!(status.opened <= 8, "{} were opened", status.opened);
    assert_eq!(status.closes.total(), 0, "something healthy was closed");
    rig.assert_full_service().await;
}

/// puddle, the stress mix: twice as many workers as resources choose at random how to acquire and
/// how to return.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn puddle_stress_mix_loses_nothing() {
    const SIZE: usize = 10;
    let rig = Arc::new(Rig::with_max_size(SIZE));
    let mut workers = JoinSet::new();
    for seed in 0..2 * SIZE {
        let rig = Arc::clone(&rig);
        workers.spawn(async move {
            let mut dice = Rng::with_seed(seed as u64);
            for _ in 0..1_000 {
                if let Some(lease) = acquire_somehow(&rig, &mut dice).await {
                    yield_now().await;
                    give_back_somehow(lease, &mut dice);
                }
            }
        });
    }

    timeout(LONG, workers.join_all()).await.expect("stuck");

    // Detached resources live on outside the pool, so the peak of the backend says nothing here.
    let mut leases = Vec::new();
    for _ in 0..SIZE {
        leases.push(rig.pool.acquire_within(LONG).await.expect("lost"));
    }
    assert!(rig.pool.try_acquire().unwrap().is_none());
    let status = rig.pool.status();
    let gone = status.closes.total() + status.detached;
    assert!(gone > 0 && status.timed_out > 0, "{status:#?}");
    assert_eq!(status.opened - gone, SIZE as u64, "{status:#?}");
    assert_eq!(rig.backend.alive(), SIZE);
}

async fn acquire_somehow(rig: &Rig, dice: &mut Rng) -> Option<Lease<GatedManager>> {
    match dice.u8(0..5) {
        0 | 1 => Some(rig.pool.acquire_within(LONG).await.expect("stuck")),
        2 => {
            let patience = Duration::from_micros(dice.u64(0..=2));
            rig.pool.acquire_within(patience).await.ok()
        }
        3 => rig.pool.try_acquire().expect("the pool is open"),
        _ => {
            let status = rig.pool.status();
            let sum =
                status.idle + status.in_use + status.opening + status.cleaning + status.checking;
            assert_eq!(status.total, sum, "{status:#?}");
            assert!(status.total <= status.max_size, "{status:#?}");
            None
        }
    }
}

fn give_back_somehow(lease: Lease<GatedManager>, dice: &mut Rng) {
    match dice.u8(0..100) {
        0..5 => Lease::discard(lease),
        5..10 => drop(Lease::detach(lease)),
        _ => drop(lease),
    }
}

/// Opens numbers, no number twice, and fails one time in ten.
#[derive(Default)]
struct FailsOneInTen(AtomicU64);

impl Manager for FailsOneInTen {
    type Resource = u64;
    type Error = std::io::Error;

    async fn open(&self) -> Result<u64, std::io::Error> {
        yield_now().await;
        if fastrand::u8(0..10) == 0 {
            return Err(std::io::Error::other("one in ten"));
        }
        Ok(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Vert.x: 16 actors, and one open in ten fails. Each acquire has exactly one outcome: a lease that
/// no other caller has, or the error of one failed open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vertx_actors_have_exactly_one_outcome_each() {
    const ROUNDS: usize = 1_000;
    let pool = Pool::builder(FailsOneInTen::default())
        .max_size(8)
        .build()
        .unwrap();
    let held = Arc::new(Mutex::new(HashSet::new()));
    let mut actors = JoinSet::new();
    for seed in 0..16 {
        let (pool, held) = (pool.clone(), Arc::clone(&held));
        actors.spawn(async move {
            let mut dice = Rng::with_seed(seed);
            let (mut served, mut failed) = (0, 0);
            for _ in 0..ROUNDS {
                match pool.acquire_within(LONG).await {
                    Ok(lease) => {
                        served += 1;
                        assert!(held.lock().unwrap().insert(*lease), "held twice");
                        yield_now().await;
                        held.lock().unwrap().remove(&*lease);
                        if dice.u8(0..4) == 0 {
                            Lease::discard(lease);
                        }
                    }
                    Err(AcquireError::Open {
                        error: OpenError::Failed(_),
                        ..
                    }) => failed += 1,
                    Err(other) => panic!("neither served nor told why: {other}"),
                }
            }
            (served, failed)
        });
    }

    let outcomes = timeout(LONG, actors.join_all()).await.expect("stuck");

    let served: u64 = outcomes.iter().map(|(served, _)| served).sum();
    let failed: u64 = outcomes.iter().map(|(_, failed)| failed).sum();
    let status = pool.status();
    assert_eq!(served + failed, 16 * ROUNDS as u64);
    assert_eq!((status.acquired, status.released), (served, served));
    assert!(failed > 0 && failed <= status.open_failed, "{status:#?}");
    assert_eq!((status.in_use, status.waiting), (0, 0));
}

/// Agroal: 32 tasks on 10 resources, and the pool is closed while most of them wait. Every waiter
/// is released at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agroal_close_during_waits_releases_every_waiter() {
    let rig = Arc::new(Rig::with_max_size(10));
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let rig = Arc::clone(&rig);
        tasks.spawn(async move {
            for call in 0.. {
                match rig.pool.acquire_within(LONG).await {
                    Ok(lease) => {
                        yield_now().await;
                        drop(lease);
                    }
                    Err(AcquireError::Closed { .. }) => return call,
                    Err(other) => panic!("{other}"),
                }
            }
            0
        });
    }
    while rig.pool.status().acquired < 5_000 {
        yield_now().await;
    }

    rig.pool.close();
    let calls = timeout(LONG, tasks.join_all()).await.expect("stuck");

    assert!(calls.iter().sum::<i32>() >= 5_000);
    timeout(LONG, async {
        while rig.backend.alive() > 0 {
            yield_now().await;
        }
    })
    .await
    .expect("something was left open");
}
