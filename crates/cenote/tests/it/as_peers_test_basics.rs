//! Behaviour that other pools test but do not document.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::breaker::BreakerState;
use cenote::config::WarmUp;
use cenote::{AcquireError, CloseReason, Lease};
use cenote_testkit::clock::{advance, eventually, settle};
use cenote_testkit::{Call, Gate, Rig, Thing};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::support::rigs::hold;

/// As Async\Pool tests it.
#[tokio::test(start_paused = true)]
async fn a_fresh_resource_is_not_asked_about() {
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .before_acquire(async |thing: &mut Thing| thing.pass(Call::BeforeAcquire).await)
    });
    rig.backend.always(Call::BeforeAcquire, Gate::Fail);

    drop(rig.acquire().await);
    assert_eq!(rig.backend.calls(Call::BeforeAcquire), 0);
    let second = rig.acquire().await;

    assert_eq!(rig.backend.calls(Call::BeforeAcquire), 1);
    assert_eq!(second.serial, 2);
}

/// As Async\Pool tests it.
#[tokio::test(start_paused = true)]
async fn a_warm_up_that_fails_midway_has_opened_as_many_as_the_status_says() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(3).max_opening(1));
    rig.backend.once(Call::Open, Gate::Pass);
    rig.backend.once(Call::Open, Gate::Fail);

    let warmed = rig.pool.warm().await;

    assert!(warmed.is_err());
    let status = rig.pool.status();
    assert_eq!((status.opened, status.open_failed), (1, 1));
    assert_eq!(rig.backend.calls(Call::Open), 2);
    rig.assert_full_service().await;
}

/// phpdot/pool: all connects of the warm-up fail; the pool is empty, and serves later.
#[tokio::test(start_paused = true)]
async fn a_warm_up_in_which_everything_fails_leaves_an_empty_pool_that_serves_later() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(3).warm_up(WarmUp::BestEffort));
    rig.backend.always(Call::Open, Gate::Fail);

    let warmed = rig.pool.warm().await;
    settle().await;

    assert!(warmed.is_ok());
    assert_eq!(rig.pool.status().total, 0);
    rig.assert_full_service().await;
}

/// As Async\Pool tests it.
#[tokio::test(start_paused = true)]
async fn six_waiters_are_served_in_the_order_of_their_arrival_for_three_rounds() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = JoinSet::new();
    for name in 0..6 {
        let (pool, served) = (rig.pool.clone(), Arc::clone(&served));
        waiters.spawn(async move {
            for _ in 0..3 {
                let lease = pool.acquire().await.unwrap();
                served.lock().unwrap().push(name);
                sleep(Duration::from_millis(1)).await;
                drop(lease);
            }
        });
    }
    settle().await;

    drop(held);
    waiters.join_all().await;

    let expected: Vec<_> = (0..3).flat_map(|_| 0..6).collect();
    assert_eq!(*served.lock().unwrap(), expected);
}

/// Async\Pool: a cancelled waiter hands on a resource; here the mere right to open one.
#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_hands_on_mere_capacity() {
    let rig = Rig::with_max_size(1);
    rig.backend
        .once(Call::Close, Gate::Slow(Duration::from_millis(10)));
    let held = rig.acquire().await;
    let (first, second) = (rig.wait(), rig.wait());

    Lease::discard(held);
    settle().await;
    drop(first);

    assert_eq!(second.await.unwrap().serial, 2);
    assert_eq!(rig.backend.calls(Call::Open), 2);
    rig.assert_full_service().await;
}

/// Async\Pool: a cancelled waiter leaves the resource reusable if no other caller waits.
#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_leaves_capacity_for_the_next_caller() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiter = rig.wait();

    Lease::discard(held);
    drop(waiter);
    settle().await;

    assert_eq!(rig.pool.status().waiting, 0);
    rig.assert_full_service().await;
}

/// As Async\Pool tests it.
#[tokio::test(start_paused = true)]
async fn a_close_while_a_grant_is_not_taken_closes_its_resource_exactly_once() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiter = rig.wait();
    drop(held);

    rig.pool.close();
    let told = waiter.await;
    settle().await;

    assert!(matches!(told, Err(AcquireError::Closed { .. })));
    assert_eq!(
        (rig.backend.calls(Call::Close), rig.backend.alive()),
        (1, 0)
    );
    assert_eq!(rig.recorder.of("closed"), ["closed 1 pool_closed"]);
}

/// As Async\Pool tests it.
#[tokio::test(start_paused = true)]
async fn a_trip_while_a_grant_is_not_taken_fails_both_waiters() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let (granted, waiting) = (rig.wait(), rig.wait());
    drop(held);

    rig.pool.breaker().trip();

    for waiter in [granted, waiting] {
        let told = waiter.await;
        assert!(matches!(told, Err(AcquireError::Unavailable(_))));
    }
    assert_eq!((rig.pool.status().idle, rig.pool.status().in_use), (1, 0));
    rig.pool.breaker().reset();
    assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
    rig.assert_full_service().await;
}

/// Async\Pool: its ring buffer of waiters had to grow while it was rotated.
#[tokio::test(start_paused = true)]
async fn a_queue_that_grows_while_it_moves_stays_in_order() {
    let rig = Rig::with_max_size(1);
    let mut lease = rig.acquire().await;
    let mut line: std::collections::VecDeque<_> = (0..7).map(|_| rig.wait()).collect();

    for round in 0..100 {
        drop(lease);
        let mut first = line.pop_front().unwrap();
        assert!(first.is_served(), "round {round}");
        lease = first.await.unwrap();
        line.extend([rig.wait(), rig.wait()]);
    }

    assert_eq!(rig.pool.status().waiting, 107);
    drop((lease, line));
    rig.assert_full_service().await;
}

/// Async\Pool, chaos test: every sample accounts for all resources.
#[tokio::test(start_paused = true)]
async fn every_sample_accounts_for_every_resource() {
    let rig = Arc::new(Rig::new(|pool| {
        pool.max_size(3).check_after_idle(Duration::ZERO)
    }));
    for call in [Call::Open, Call::Check, Call::Clean, Call::Close] {
        rig.backend
            .always(call, Gate::Slow(Duration::from_millis(3)));
    }
    let mut tasks = JoinSet::new();
    for task in 0..10 {
        let rig = Arc::clone(&rig);
        tasks.spawn(async move {
            for round in 0..20 {
                let mut lease = rig.acquire().await;
                lease.dirty = (task + round) % 3 == 0;
                lease.broken = (task + round) % 7 == 0;
                sleep(Duration::from_millis(2)).await;
            }
        });
    }

    while !tasks.is_empty() {
        let status = rig.pool.status();
        let counted =
            status.idle + status.in_use + status.opening + status.cleaning + status.checking;
        assert_eq!(status.total, counted, "{status:#?}");
        assert!(status.total + status.closing <= 3, "{status:#?}");
        assert!(rig.backend.alive() <= 3);
        let _ = timeout(Duration::from_millis(1), tasks.join_next()).await;
    }

    assert_eq!(rig.pool.status().acquired, 200);
    assert_eq!(rig.pool.status().released, 200);
    rig.assert_full_service().await;
}

/// As phpdot/pool tests it.
#[tokio::test(start_paused = true)]
async fn a_return_after_the_close_closes_the_resource() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;

    rig.pool.close();
    assert_eq!(rig.pool.status().total, 1);
    drop(lease);
    settle().await;

    assert_eq!((rig.pool.status().total, rig.backend.alive()), (0, 0));
    assert_eq!(rig.pool.status().closes.by(CloseReason::PoolClosed), 1);
}

/// phpdot/pool: a close outside a coroutine crashed.
#[test]
fn a_close_outside_a_runtime_closes_idle_resources() {
    let rig = Rig::with_max_size(1);
    drop(rig.pool.acquire_blocking().unwrap());

    rig.pool.close();

    assert!(rig.pool.is_closed());
    let refused = rig.pool.acquire_blocking();
    assert!(matches!(refused, Err(AcquireError::Closed { .. })));
    assert_eq!(rig.pool.status().idle, 0);
    let Rig { pool, backend, .. } = rig;
    drop(pool);
    eventually("it is closed", || backend.alive() == 0);
}

/// As phpdot/pool tests it.
#[tokio::test(start_paused = true)]
async fn the_heartbeat_replaces_all_that_died_and_returns_to_the_minimum() {
    let rig = Rig::new(|pool| {
        pool.max_size(4)
            .min_size(3)
            .heartbeat_interval(Duration::from_secs(10))
    });
    rig.pool.warm().await.unwrap();
    for _ in 0..3 {
        rig.backend.once(Call::Check, Gate::Fail);
    }

    advance(Duration::from_secs(10)).await;
    sleep(Duration::from_secs(1)).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.total, status.opened), (3, 3, 6));
    assert_eq!(status.closes.by(CloseReason::FailedCheck), 3);
    rig.assert_full_service().await;
}

/// As phpdot/pool tests it.
#[tokio::test(start_paused = true)]
async fn a_dead_return_is_refilled() {
    let rig = Rig::new(|pool| pool.max_size(2).min_size(2));
    rig.pool.warm().await.unwrap();

    rig.acquire().await.broken = true;
    sleep(Duration::from_secs(1)).await;

    assert_eq!((rig.pool.status().idle, rig.pool.status().opened), (2, 3));
}

/// phpdot/pool: with its timers suspended, a pool keeps its resources past their time and lends
/// them.
#[tokio::test(start_paused = true)]
async fn paused_upkeep_evicts_nothing_and_the_pool_lends() {
    let rig = Rig::new(|pool| pool.max_size(1).idle_timeout(Duration::from_secs(10)));
    drop(rig.acquire().await);
    rig.pool.pause_upkeep();

    advance(Duration::from_secs(60)).await;

    assert_eq!(rig.pool.status().idle, 1);
    assert_eq!(rig.acquire().await.serial, 1);
    rig.pool.resume_upkeep();
    advance(Duration::from_secs(11)).await;
    assert_eq!(rig.pool.status().total, 0);
}

/// Nexus ConnectionPool: one tick evicts resources that are idle for too long and restores the
/// minimum.
#[tokio::test(start_paused = true)]
async fn an_eviction_never_leaves_less_than_the_minimum() {
    let rig = Rig::new(|pool| {
        pool.max_size(4)
            .min_size(2)
            .idle_timeout(Duration::from_secs(10))
    });
    let leases = hold(&rig, 4).await;
    drop(leases);

    advance(Duration::from_secs(11)).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.closes.by(CloseReason::Idle)), (2, 2));
    assert_eq!(status.opened, 4, "nothing had to be opened for it");
}

/// Nexus ConnectionPool: the next caller receives the same resource, cleaned; a clean resource is
/// never cleaned.
#[tokio::test(start_paused = true)]
async fn the_next_caller_gets_the_same_resource_cleaned_and_a_clean_one_is_not_cleaned() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    assert_eq!(rig.backend.calls(Call::Clean), 0);

    rig.acquire().await.dirty = true;
    let next = rig.acquire().await;

    assert_eq!((next.serial, next.dirty), (1, false));
    assert_eq!(rig.backend.calls(Call::Clean), 1);
}

/// As the Nexus ConnectionPool tests it.
#[tokio::test(start_paused = true)]
async fn two_pools_share_nothing() {
    let (one, other) = (Rig::with_max_size(1), Rig::with_max_size(1));
    let _held = one.acquire().await;
    one.pool.suspend();

    let lease = other.acquire().await;
    one.pool.close();

    assert_ne!(one.pool.name(), other.pool.name());
    assert_eq!(Lease::id(&lease), 1);
    assert!(!other.pool.is_closed());
    drop(lease);
    other.assert_full_service().await;
}
