//! The caps: in total, for each key, and while they change.

use cenote::{CloseReason, Lease};
use cenote_keyed::Held;
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate};

use crate::SECOND;
use crate::rig::Rig;

#[tokio::test(start_paused = true)]
async fn no_more_than_the_total_exist_over_all_keys() {
    let rig = Rig::new(3, 3);
    let held = (rig.hold(1, 2).await, rig.hold(2, 1).await);

    let mut waiting = rig.wait(3);
    advance(SECOND).await;

    assert!(!waiting.is_served());
    assert_eq!((rig.alive(), rig.pools.status().waiting), (3, 1));
    drop(held);
    assert!(waiting.await.is_ok());
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn one_key_has_no_more_than_its_own_cap_although_places_are_free() {
    let rig = Rig::new(10, 2);
    let mut held = rig.hold(1, 2).await;

    let mut waiting = rig.wait(1);
    advance(SECOND).await;

    assert!(!waiting.is_served());
    assert_eq!((rig.alive(), rig.pools.status().waiting), (2, 0));
    held.pop();
    assert!(waiting.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_place_is_not_free_before_the_close_is_done() {
    let rig = Rig::new(1, 1);
    rig.backend(1).always(Call::Close, Gate::Slow(SECOND));
    drop(rig.acquire(1).await);

    let mut waiting = rig.wait(2);
    settle().await;
    let during = (rig.alive(), waiting.is_served());
    advance(SECOND).await;

    assert_eq!(during, (1, false));
    assert!(waiting.is_served());
}

#[tokio::test(start_paused = true)]
async fn a_detached_resource_keeps_its_place_until_it_is_dropped() {
    let rig = Rig::new(1, 1);
    let detached = Lease::detach(rig.acquire(1).await);

    let mut waiting = rig.wait(2);
    advance(SECOND).await;
    assert!(!waiting.is_served());

    let thing = Held::into_inner(detached);
    assert!(waiting.await.is_ok());
    drop(thing);
}

#[tokio::test(start_paused = true)]
async fn a_larger_total_serves_those_that_wait() {
    let rig = Rig::new(1, 1);
    let _held = rig.acquire(1).await;
    let waiting = (rig.wait(2), rig.wait(3));
    settle().await;

    rig.pools.resize(3).unwrap();

    assert!(waiting.0.await.is_ok() && waiting.1.await.is_ok());
    assert!(rig.pools.resize(0).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_smaller_total_closes_idle_resources_now_and_others_as_they_come_back() {
    let rig = Rig::new(4, 2);
    let held = (rig.acquire(1).await, rig.acquire(2).await);
    drop((rig.acquire(3).await, rig.acquire(4).await));

    rig.pools.resize(1).unwrap();
    settle().await;
    assert_eq!(
        (rig.alive(), rig.backend(3).alive() + rig.backend(4).alive()),
        (2, 0)
    );
    drop(held.0);
    settle().await;

    assert_eq!((rig.alive(), rig.pools.status().held), (1, 1));
    drop(held.1);
    settle().await;
    assert_eq!(rig.alive(), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn resources_that_are_kept_ready_take_free_places_only() {
    let rig = Rig::with(|pools| pools.total(2).max_size(2).min_idle(1));
    let _held = (rig.acquire(1).await, rig.acquire(2).await);

    advance(60 * SECOND).await;

    assert_eq!(rig.alive(), 2);
    let status = rig.pools.pool(&1).unwrap().status();
    assert_eq!(
        (status.open_failed, status.closes.by(CloseReason::Refused)),
        (0, 0)
    );
}
