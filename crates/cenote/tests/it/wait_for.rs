//! Futures that wait until the pool is closed, is healthy, or has some status.

use std::time::Duration;

use cenote::{Health, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig, cut};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn closed_ends_when_any_handle_closes_the_pool() {
    let rig = Rig::with_max_size(1);
    let pool = rig.pool.clone();
    let told = tokio::spawn(async move { pool.closed().await });
    settle().await;
    assert!(!told.is_finished());

    rig.pool.close();

    told.await.unwrap();
    rig.pool.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_holds_ends_the_wait_at_once() {
    let rig = Rig::with_max_size(3);

    let status = cut(1, rig.pool.wait_for(|status| status.max_size == 3)).await;

    assert_eq!(status.map(|status| status.total), Some(0));
}

#[tokio::test(start_paused = true)]
async fn every_change_of_the_status_is_seen() {
    let rig = Rig::with_max_size(2);
    // Their slots are on trays by now.
    rig.leave_idle(2).await;
    drop(rig.acquire().await);
    let waits = |condition: fn(&cenote::Status) -> bool| {
        let pool = rig.pool.clone();
        tokio::spawn(async move { pool.wait_for(condition).await })
    };

    let out = waits(|status| status.in_use == 2);
    settle().await;
    let leases = (rig.acquire().await, rig.acquire().await);
    assert_eq!(out.await.unwrap().in_use, 2);

    let queued = waits(|status| status.waiting == 1);
    settle().await;
    let waiting = rig.wait();
    assert_eq!(queued.await.unwrap().waiting, 1);

    let quiet = waits(|status| status.in_use == 0);
    settle().await;
    drop(waiting);
    drop(leases);
    assert_eq!(quiet.await.unwrap().idle, 2);

    let gone = waits(|status| status.total == 0);
    settle().await;
    rig.pool.invalidate();
    assert_eq!(gone.await.unwrap().idle, 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_dropped_leaves_the_fast_path_as_it_was() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);

    let never = cut(1, rig.pool.wait_for(|_| false)).await;
    assert!(never.is_none());
    for _ in 0..3 {
        drop(rig.acquire().await);
    }

    assert_eq!(rig.pool.status().acquired, 4);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn many_can_wait_for_different_things() {
    let rig = Rig::with_max_size(1);
    let pools = [1, 2, 3].map(|_| rig.pool.clone());
    let waits = pools.map(|pool| {
        tokio::spawn(async move { pool.wait_for(|status| status.acquired >= 3).await.acquired })
    });
    settle().await;

    for _ in 0..3 {
        drop(rig.acquire().await);
    }

    for wait in waits {
        assert_eq!(wait.await.unwrap(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn healthy_ends_when_the_backend_is_back() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());
    assert!(matches!(rig.pool.health(), Health::Down { .. }));
    let pool = rig.pool.clone();
    let healthy = tokio::spawn(async move { pool.healthy().await });
    settle().await;
    assert!(!healthy.is_finished());

    rig.backend.heal();
    advance(SECOND).await;
    drop(rig.acquire().await);

    assert_eq!(healthy.await.unwrap(), Health::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_busy_pool_is_healthy() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;

    assert_eq!(rig.pool.healthy().await, Health::Busy);
    Lease::discard(lease);
}

/// Their polls ask the ledger. If that woke them, they would spin, and no time would pass.
#[tokio::test(start_paused = true)]
async fn a_warm_up_and_a_drain_rest_while_another_future_watches_every_change() {
    let rig = Rig::with_max_size(1);
    let pool = rig.pool.clone();
    let watches = tokio::spawn(async move { pool.wait_for(|status| status.acquired == 9).await });
    rig.backend.once(Call::Open, Gate::Slow(SECOND));
    settle().await;

    rig.pool.warm().await.unwrap();
    let _held = rig.acquire().await;
    let left = rig.pool.close_within(SECOND).await;

    assert_eq!(left.leases.len(), 1);
    assert!(!watches.is_finished());
}
