//! Closing all pools, one pool, or none: places come back, and waiters are told.

use cenote_keyed::AcquireError;
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate};

use crate::SECOND;
use crate::rig::Rig;

#[tokio::test(start_paused = true)]
async fn waiters_for_a_place_are_told_and_later_callers_are_refused() {
    let rig = Rig::new(1, 1);
    let held = rig.acquire(1).await;
    let waiting = rig.wait(2);
    settle().await;

    rig.pools.close();
    settle().await;

    assert!(matches!(
        waiting.await,
        Err(AcquireError::Pool(cenote::AcquireError::Closed { .. }))
    ));
    assert!(rig.pools.is_closed());
    assert!(matches!(
        rig.pools.acquire(&3).await,
        Err(AcquireError::Closed)
    ));
    assert!(rig.pools.acquire(&1).await.is_err());
    drop(held);
    settle().await;
    assert_eq!((rig.alive(), rig.pools.status().held), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_the_leases_of_all_keys_and_names_those_that_are_left() {
    let rig = Rig::new(4, 2);
    let (first, second) = (rig.acquire(1).await, rig.acquire(2).await);
    drop(rig.acquire(3).await);

    let left = rig.pools.close_within(SECOND).await;
    let mut keys: Vec<_> = left
        .iter()
        .map(|(key, left)| (*key, left.leases.len()))
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, [(1, 1), (2, 1)]);
    drop((first, second));

    assert!(rig.pools.close_within(SECOND).await.is_empty());
    assert_eq!((rig.alive(), rig.pools.status().held), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_drain_does_not_wait_for_an_open_that_waits_for_a_place() {
    let rig = Rig::new(1, 2);
    let held = rig.acquire(1).await;
    let waiting = rig.wait(2);
    settle().await;
    drop(held);
    drop(waiting);

    let left = rig.pools.close_within(SECOND).await;

    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn the_places_of_pools_that_were_dropped_come_back_with_their_leases() {
    let rig = Rig::new(2, 2);
    let lease = rig.acquire(1).await;
    drop(rig.acquire(2).await);
    let backend = rig.backend(1);

    drop(rig);
    drop(lease);
    settle().await;

    assert_eq!(backend.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_closed_by_hand_gives_its_places_to_the_others() {
    let rig = Rig::new(2, 2);
    drop(rig.hold(1, 2).await);
    let held = rig.acquire(2).await;
    let waiting = rig.wait(3);
    settle().await;

    rig.pools.pool(&1).unwrap().close();

    assert!(waiting.await.is_ok());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn all_resources_of_all_keys_are_invalidated() {
    let rig = Rig::new(4, 2);
    let held = rig.acquire(1).await;
    drop(rig.acquire(2).await);

    rig.pools.invalidate();
    drop(held);
    settle().await;

    assert_eq!((rig.alive(), rig.pools.status().held), (0, 0));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_close_that_hangs_gives_its_place_back_when_its_time_is_over() {
    let rig = Rig::with(|pools| pools.total(1).max_size(1).close_timeout(SECOND * 3));
    rig.backend(1).always(Call::Close, Gate::Hang);
    drop(rig.acquire(1).await);

    let mut waiting = rig.wait(2);
    advance(SECOND * 2).await;
    assert!(!waiting.is_served());
    advance(SECOND).await;

    assert!(waiting.is_served());
}
