//! Extreme situations: clocks that jump, runtimes that end while leases are out, and a thousand
//! pools in one process.

use std::thread;
use std::time::Duration;

use cenote::{AcquireError, Pool};
use cenote_testkit::clock::settle;
use cenote_testkit::{GatedManager, GatedPool, Rig};
use tokio::runtime::Handle;
use tokio::time::{advance, sleep, timeout};

use crate::support::runtimes::with_workers;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// The clock jumps by an hour while leases are out and callers wait. Waiters with a deadline time
/// out, waiters without one wait on, and returned resources are judged by their age.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_an_hour_loses_nothing() {
    let rig = Rig::with_max_size(2);
    let leases = [rig.acquire().await, rig.acquire().await];
    let (pool, other) = (rig.pool.clone(), rig.pool.clone());
    let hurried = tokio::spawn(async move { pool.acquire().await });
    settle().await;
    let patient = tokio::spawn(async move { other.acquire_within(24 * HOUR).await });
    settle().await;

    advance(HOUR).await;
    settle().await;

    let told = hurried.await.unwrap().unwrap_err();
    assert!(matches!(told, AcquireError::TimedOut(_)), "{told}");
    assert!(!patient.is_finished());
    assert_eq!(rig.recorder.of("leaked").len(), 2);
    drop(leases);
    let served = patient.await.unwrap().unwrap();
    assert_eq!(served.serial, 3, "it was older than its lifetime");
    drop(served);
    rig.assert_full_service().await;
}

/// The same while nothing is out: idle resources are too old, and no caller gets them.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_an_hour_leaves_nothing_stale() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(4));
    rig.pool.warm().await.unwrap();

    advance(HOUR).await;
    let lease = rig.acquire().await;
    settle().await;

    assert!(lease.serial > 4);
    let status = rig.pool.status();
    assert_eq!((status.total, status.closes.total()), (4, 4), "{status:#?}");
}

/// Many small jumps, each over several due dates at once.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_again_and_again_keeps_the_pool_in_service() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(2).heartbeat_interval(SECOND));
    let mut leases = Vec::new();

    for jump in 0..100_u32 {
        leases.push(timeout(10 * SECOND, rig.acquire()).await.unwrap());
        if leases.len() == 4 {
            leases.drain(..2);
        }
        advance(SECOND * (jump * 37 % 4_000)).await;
    }

    drop(leases);
    rig.assert_full_service().await;
}

/// A runtime is shut down while its tasks hold leases and others wait; the pool goes on in another
/// runtime.
#[test]
fn a_runtime_that_shuts_down_with_leases_out_gives_them_back() {
    let rig = Rig::with_max_size(4);
    let first = with_workers(1);
    for _ in 0..16 {
        let pool = rig.pool.clone();
        first.spawn(async move {
            let _lease = pool.acquire_within(HOUR).await;
            sleep(HOUR).await;
        });
    }
    while rig.pool.status().in_use < 4 || rig.pool.status().waiting < 12 {
        thread::yield_now();
    }

    first.shutdown_timeout(SECOND);

    let status = rig.pool.status();
    assert_eq!((status.in_use, status.waiting), (0, 0), "{status:#?}");
    with_workers(1).block_on(rig.assert_full_service());
}

/// A lease outlives its runtime and is dropped on a plain thread, where it serves a waiter on
/// another runtime.
#[test]
fn a_lease_that_outlives_its_runtime_serves_a_waiter_on_another() {
    let rig = Rig::with_max_size(1);
    let first = with_workers(1);
    let lease = first.block_on(rig.acquire());
    first.shutdown_timeout(SECOND);
    let second = with_workers(1);
    let pool = rig.pool.clone();
    let waiter = second.spawn(async move { pool.acquire_within(HOUR).await.map(drop) });
    while rig.pool.status().waiting == 0 {
        thread::yield_now();
    }

    thread::spawn(move || drop(lease)).join().unwrap();

    second.block_on(waiter).unwrap().unwrap();
    second.block_on(rig.assert_full_service());
}

fn many(count: usize) -> Vec<GatedPool> {
    let one = || {
        Pool::builder(GatedManager(Default::default()))
            .min_size(1)
            .upkeep_interval(24 * HOUR)
            .build()
            .expect("the settings are valid")
    };
    (0..count).map(|_| one()).collect()
}

/// A thousand pools: one task each, which sleeps unless something is due, and none when the pools
/// are gone.
#[tokio::test(start_paused = true)]
async fn a_thousand_pools_cost_one_sleeping_task_each() {
    const POOLS: usize = 1_000;
    let metrics = Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    let pools = many(POOLS);
    for pool in &pools {
        drop(pool.acquire().await.unwrap());
    }
    settle().await;

    let tasks = metrics.num_alive_tasks() - before;
    let parked = metrics.worker_park_unpark_count(0);
    sleep(HOUR).await;
    let naps = (metrics.worker_park_unpark_count(0) - parked) / 2;

    // One more task knows whether the runtime lives.
    assert!(tasks <= POOLS + 1, "{tasks} tasks");
    // Each resource is replaced twice in that hour because of its age. There is no other reason to
    // wake.
    let each = naps / POOLS as u64;
    assert!(each <= 20, "each woke the thread {each} times in an hour");
    assert!(pools.iter().all(|pool| pool.status().total == 1));
    drop(pools);
    settle().await;
    assert!(metrics.num_alive_tasks() <= before + 1);
}
