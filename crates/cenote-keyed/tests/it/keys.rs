//! Keys come and go: those without resources are dropped, and all have one upkeep task.

use cenote::CloseReason;
use cenote_testkit::Call;
use cenote_testkit::clock::{advance, settle};
use tokio::runtime::Handle;

use crate::SECOND;
use crate::rig::Rig;

#[tokio::test(start_paused = true)]
async fn keys_that_lost_their_resources_are_dropped_when_other_keys_come() {
    let rig = Rig::new(4, 4);

    for key in 0..3_000 {
        drop(rig.acquire(key).await);
    }

    // Each of the 64 shards keeps a few keys that were not looked at twice yet.
    let status = rig.pools.status();
    assert!(status.keys <= 64 * 6, "{status:?}");
    assert_eq!((rig.alive(), status.held), (4, 4));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_with_a_lease_or_a_waiter_is_kept() {
    let rig = Rig::new(2, 1);
    let held = rig.acquire(0).await;
    let waiting = rig.wait(0);

    for key in 1..2_000 {
        drop(rig.acquire(key).await);
    }
    let mut other = rig.wait(0);
    drop(held);
    let lease = waiting.await.unwrap();
    settle().await;

    assert!(!other.is_served(), "the cap of the key holds");
    assert_eq!((lease.serial, rig.backend(0).peak()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_dropped_comes_back_as_new() {
    let rig = Rig::new(1, 1);
    drop(rig.acquire(0).await);
    for key in 1..2_000 {
        drop(rig.acquire(key).await);
    }
    assert!(rig.pools.statuses().iter().all(|(key, _)| *key != 0));

    drop(rig.acquire(0).await);

    assert_eq!(rig.backend(0).calls(Call::Open), 2);
}

#[tokio::test(start_paused = true)]
async fn all_keys_have_one_upkeep_task() {
    let rig = Rig::with(|pools| pools.total(50).max_size(1).idle_timeout(SECOND * 10));
    for key in 0..50 {
        drop(rig.acquire(key).await);
        advance(SECOND / 10).await;
    }
    let tasks = Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks, 2, "the upkeep, and the mark of the runtime");

    advance(SECOND * 20).await;

    assert_eq!((rig.alive(), rig.pools.status().held), (0, 0));
    let closes = rig.pools.pool(&7).unwrap().status().closes;
    assert_eq!(closes.by(CloseReason::Idle), 1);
}

#[tokio::test(start_paused = true)]
async fn the_leases_of_all_keys_are_listed() {
    let rig = Rig::new(4, 2);
    let _first = rig.acquire(1).await;
    advance(SECOND).await;
    let _second = rig.acquire(2).await;

    let leases = rig.pools.leases();

    let keys: Vec<_> = leases.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [1, 2]);
    assert!(leases[0].1.site.file().ends_with("rig.rs"));
}

#[tokio::test(start_paused = true)]
async fn a_try_takes_an_idle_resource_and_opens_only_where_a_place_is_free() {
    let rig = Rig::new(1, 1);
    assert!(rig.pools.try_acquire(&1).unwrap().is_none());
    settle().await;
    let lease = rig.pools.try_acquire(&1).unwrap();
    assert!(lease.is_some(), "the first try began an open");

    assert!(rig.pools.try_acquire(&2).unwrap().is_none());
    drop(lease);
    advance(SECOND).await;

    assert_eq!(
        (rig.backend(1).alive(), rig.backend(2).calls(Call::Open)),
        (1, 0)
    );
}
