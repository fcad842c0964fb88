//! Retain: closes the idle that fail the predicate, and loses nothing when the predicate panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use cenote::{Lease, Reason};
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
async fn it_closes_the_idle_that_the_predicate_refuses_and_keeps_the_rest() {
    let rig = idling(4).await;

    rig.pool.retain(|thing| thing.serial % 2 == 0);
    settle().await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.closed.by(Reason::Refused)), (2, 2));
    assert_eq!(rig.backend.alive(), 2);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn it_asks_about_each_idle_resource_once_and_about_no_other() {
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
async fn on_an_empty_pool_it_asks_nothing() {
    let rig = Rig::with_max_size(2);

    rig.pool.retain(|_| panic!("there is nothing to ask about"));

    assert_eq!(rig.pool.status().total, 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_predicate_goes_on_and_nothing_is_lost() {
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
    assert_eq!(status.closed.by(Reason::Refused), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn meanwhile_the_others_are_lent() {
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
async fn one_in_nobodys_hands_counts_as_checked() {
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
async fn one_who_comes_meanwhile_is_served_by_what_is_kept() {
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
async fn one_who_comes_meanwhile_is_served_by_a_new_one_if_none_is_kept() {
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
async fn one_who_comes_meanwhile_is_served_though_the_predicate_panics() {
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
async fn what_is_kept_is_no_fresher_and_no_staler_than_before() {
    let rig = idling(1).await;
    advance(SECOND * 10).await;

    rig.pool.retain(|_| true);
    let unchecked = rig.pool.try_acquire().unwrap();

    assert!(unchecked.is_none(), "it was not checked since ten seconds");
}

#[tokio::test(start_paused = true)]
async fn a_predicate_that_closes_the_pool_gets_what_it_asked_for() {
    let rig = idling(2).await;

    rig.pool.retain(|_| {
        rig.pool.close();
        true
    });
    settle().await;

    assert_eq!(rig.pool.status().closed.by(Reason::PoolClosed), 2);
    assert_eq!(rig.backend.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_predicate_that_invalidates_the_pool_gets_what_it_asked_for() {
    let rig = idling(2).await;

    rig.pool.retain(|_| {
        rig.pool.invalidate();
        true
    });
    settle().await;

    assert_eq!(rig.pool.status().closed.by(Reason::Invalidated), 2);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_refilled() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(2));
    rig.pool.warm().await.unwrap();

    rig.pool.retain(|_| false);
    settle().await;
    advance(Duration::from_millis(2)).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.opened), (2, 4));
}

/// Also while nobody does the upkeep.
#[tokio::test(start_paused = true)]
async fn what_is_invalidated_while_it_is_looked_at_is_closed() {
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
