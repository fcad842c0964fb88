//! Retain: closes the idle resources that fail the predicate, and loses nothing when the predicate
//! panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use cenote::{CloseReason, Lease};
use cenote_testkit::Rig;
use cenote_testkit::clock::{advance, settle};

const SECOND: Duration = Duration::from_secs(1);

/// A rig with `count` idle resources.
async fn idling(count: usize) -> Rig {
    let rig = Rig::with_max_size(count);
    rig.leave_idle(count).await;
    rig
}

#[tokio::test(start_paused = true)]
async fn idle_resources_that_the_predicate_refuses_are_closed_and_the_rest_is_kept() {
    let rig = idling(4).await;

    rig.pool.retain(|thing| thing.serial % 2 == 0);
    settle().await;

    let status = rig.pool.status();
    assert_eq!(
        (status.idle, status.closes.by(CloseReason::Refused)),
        (2, 2)
    );
    assert_eq!(rig.backend.alive(), 2);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_predicate_sees_each_idle_resource_once_and_no_other() {
    let rig = idling(3).await;
    let held = rig.acquire().await;

    let mut asked = Vec::new();
    rig.pool.retain(|thing| {
        asked.push(thing.serial);
        true
    });

    asked.sort_unstable();
    let expected: Vec<_> = (1..=3).filter(|serial| *serial != held.serial).collect();
    assert_eq!(asked, expected);
}

#[tokio::test(start_paused = true)]
async fn on_an_empty_pool_the_predicate_is_not_called() {
    let rig = Rig::with_max_size(2);

    rig.pool.retain(|_| panic!("there is nothing to ask about"));

    assert_eq!(rig.pool.status().total, 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_predicate_reaches_the_caller_and_nothing_is_lost() {
    let rig = idling(3).await;
    let mut asked = 0;

    let panicked = catch_unwind(AssertUnwindSafe(|| {
        rig.pool.retain(|_| {
            asked += 1;
            assert!(asked < 2, "the second is too much");
            false
        });
    }));
    settle().await;

    let message = *panicked.unwrap_err().downcast::<&str>().unwrap();
    assert_eq!(message, "the second is too much");
    let status = rig.pool.status();
    assert_eq!((asked, status.idle, status.checking), (2, 2, 0));
    assert_eq!(status.closes.by(CloseReason::Refused), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn while_the_predicate_runs_the_other_resources_are_lent() {
    let rig = idling(2).await;
    let mut lent = Vec::new();

    rig.pool.retain(|thing| {
        let lease = rig.pool.try_acquire().unwrap().unwrap();
        lent.push((thing.serial, lease.serial));
        true
    });

    assert!(!lent.is_empty());
    assert!(lent.iter().all(|(looked_at, lent)| looked_at != lent));
    assert_eq!(rig.pool.status().idle, 2);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_the_predicate_sees_counts_as_checking() {
    let rig = idling(2).await;
    let mut seen = Vec::new();

    rig.pool.retain(|_| {
        let status = rig.pool.status();
        seen.push((status.idle, status.checking, status.total));
        true
    });

    assert_eq!(seen, [(1, 1, 2), (1, 1, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_comes_during_retain_is_served_by_a_kept_resource() {
    let rig = idling(1).await;
    let mut waiting = None;

    rig.pool.retain(|_| {
        waiting = Some(rig.wait());
        true
    });
    let mut waiting = waiting.unwrap();

    assert!(waiting.is_served());
    assert_eq!(Lease::id(&waiting.await.unwrap()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_comes_during_retain_is_served_by_a_new_resource_if_none_is_kept() {
    let rig = idling(1).await;
    let mut waiting = None;

    rig.pool.retain(|_| {
        waiting = Some(rig.wait());
        false
    });
    let lease = waiting.unwrap().await.unwrap();

    assert_eq!(Lease::id(&lease), 2);
    assert_eq!(rig.backend.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_comes_during_retain_is_served_though_the_predicate_panics() {
    let rig = idling(1).await;
    let mut waiting = None;

    let panicked = catch_unwind(AssertUnwindSafe(|| {
        rig.pool.retain(|_| {
            waiting = Some(rig.wait());
            panic!("no answer");
        });
    }));
    let mut waiting = waiting.unwrap();

    assert!(panicked.is_err());
    assert!(waiting.is_served());
    assert_eq!(Lease::id(&waiting.await.unwrap()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_kept_resource_is_no_fresher_and_no_staler_than_before() {
    let rig = idling(1).await;
    advance(SECOND * 10).await;

    rig.pool.retain(|_| true);
    let unchecked = rig.pool.try_acquire().unwrap();

    assert!(unchecked.is_none(), "it was not checked since ten seconds");
}

#[tokio::test(start_paused = true)]
async fn a_predicate_may_close_the_pool() {
    let rig = idling(2).await;

    rig.pool.retain(|_| {
        rig.pool.close();
        true
    });
    settle().await;

    assert_eq!(rig.pool.status().closes.by(CloseReason::PoolClosed), 2);
    assert_eq!(rig.backend.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_predicate_may_invalidate_the_pool() {
    let rig = idling(2).await;

    rig.pool.retain(|_| {
        rig.pool.invalidate();
        true
    });
    settle().await;

    assert_eq!(rig.pool.status().closes.by(CloseReason::Invalidated), 2);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn refused_resources_are_refilled() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(2));
    rig.pool.warm().await.unwrap();

    rig.pool.retain(|_| false);
    settle().await;
    advance(Duration::from_millis(2)).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.opened), (2, 4));
}

/// Also while no runtime drives the upkeep.
#[tokio::test(start_paused = true)]
async fn a_resource_that_is_invalidated_during_retain_is_closed() {
    let rig = Rig::with_max_size(2);
    drop(rig.acquire().await);
    rig.pool.pause_upkeep();

    rig.pool.retain(|_| {
        rig.pool.invalidate();
        true
    });
    settle().await;

    assert_eq!(rig.pool.status().idle, 0);
    assert_eq!(rig.backend.alive(), 0);
}
