//! Handles: a pool is a cheap handle with a name and a weak form.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use cenote::{Lease, WeakPool};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{GatedManager, GatedPool, Rig};

fn assert_handle<T: Clone + Send + Sync + Debug + Unpin + 'static>() {}
fn assert_send<T: Send>(_: &T) {}

#[tokio::test(start_paused = true)]
async fn handles_leases_and_futures_can_be_sent_wherever_they_are_needed() {
    let rig = Rig::with_max_size(1);

    assert_handle::<GatedPool>();
    assert_handle::<WeakPool<GatedManager>>();
    assert_send(&rig.pool.acquire());
    assert_send(&rig.pool.warm());
    assert_send(&rig.pool.close_within(Duration::ZERO));
    assert_send(&Lease::release(rig.acquire().await));
}

#[tokio::test(start_paused = true)]
async fn clones_are_the_same_pool() {
    let rig = Rig::with_max_size(1);
    let clone = rig.pool.clone();

    let held = clone.acquire().await.unwrap();

    assert_eq!(rig.pool.status().in_use, 1);
    assert_eq!(rig.pool.name(), clone.name());
    drop(held);
    clone.close();
    assert!(rig.pool.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_name_is_shown_in_handles_errors_and_events() {
    let rig = Rig::new(|pool| pool.name("orders").max_size(1));
    let held = rig.acquire().await;

    let error = rig.pool.acquire().await.unwrap_err();

    assert_eq!(rig.pool.name(), "orders");
    assert_eq!(error.pool(), "orders");
    assert!(error.to_string().contains("`orders`"), "{error}");
    assert_eq!(rig.recorder.of("pool_opened"), ["pool_opened orders 1"]);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn generated_names_differ() {
    let (first, second) = (Rig::with_max_size(1), Rig::with_max_size(1));

    assert!(first.pool.name().starts_with("pool-"));
    assert_ne!(first.pool.name(), second.pool.name());
}

#[tokio::test(start_paused = true)]
async fn debug_shows_the_name_and_the_numbers_without_waiting() {
    let rig = Rig::new(|pool| pool.name("orders"));
    let held = rig.acquire().await;

    let shown = format!("{:?}", rig.pool);

    assert!(shown.contains("orders"), "{shown}");
    assert!(shown.contains("in_use: 1"), "{shown}");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_weak_handle_gives_a_strong_one_while_there_is_one() {
    let rig = Rig::with_max_size(1);
    let weak = rig.pool.downgrade();

    let strong = weak.upgrade().unwrap();
    drop(rig.pool);
    let still = weak.upgrade();

    assert!(still.is_some());
    assert!(strong.acquire().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_weak_handle_does_not_keep_the_pool_open() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    let weak = rig.pool.downgrade();
    let Rig { pool, backend, .. } = rig;

    drop(pool);
    settle().await;

    assert!(weak.upgrade().is_none());
    assert!(weak.clone().upgrade().is_none());
    assert_eq!(backend.alive(), 0);
    assert_eq!(Arc::strong_count(&backend), 1, "the pool lives on");
}

#[tokio::test(start_paused = true)]
async fn a_lease_does_not_bring_a_pool_back_that_was_dropped() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let weak = rig.pool.downgrade();
    let Rig { pool, .. } = rig;

    drop(pool);

    assert!(weak.upgrade().is_none());
    assert_eq!(held.serial, 1);
}

#[tokio::test(start_paused = true)]
async fn an_upgraded_handle_counts_as_one() {
    let rig = Rig::with_max_size(1);
    let weak = rig.pool.downgrade();
    let Rig { pool, recorder, .. } = rig;
    let strong = weak.upgrade().unwrap();

    drop(pool);
    let before = recorder.of("pool_closed").len();
    drop(strong);

    assert_eq!((before, recorder.of("pool_closed").len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn the_manager_can_be_reached_through_the_pool() {
    let rig = Rig::with_max_size(1);

    assert!(Arc::ptr_eq(&rig.pool.manager().0, &rig.backend));
}

#[tokio::test(start_paused = true)]
async fn leases_are_listed_the_longest_first() {
    let rig = Rig::with_max_size(3);
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(rig.acquire().await);
        advance(Duration::from_secs(1)).await;
    }
    drop(held.swap_remove(0));

    let listed = rig.pool.leases();

    let seen: Vec<_> = listed
        .iter()
        .map(|holder| (holder.id, holder.held_for.as_secs()))
        .collect();
    assert_eq!(seen, [(2, 2), (3, 1)]);
    assert!(listed.iter().all(|holder| holder.task.is_some()));
    assert!(listed.iter().all(|holder| holder.site.file() == file!()));
}
