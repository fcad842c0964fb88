//! Resizing: grows at once, shrinks as leases are returned, and the cap holds from then on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::{CloseReason, Lease, Pool};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::rigs::hold;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn growing_serves_waiters_at_once() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let (mut first, mut second, mut third) = (rig.wait(), rig.wait(), rig.wait());

    rig.pool.resize(3).unwrap();
    settle().await;

    assert!(first.is_served() && second.is_served());
    assert!(!third.is_served());
    assert_eq!(rig.pool.status().max_size, 3);
    drop((held, first, second, third));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn shrinking_closes_idle_resources_at_once_the_longest_unused_first() {
    let rig = Rig::with_max_size(4);
    for lease in hold(&rig, 4).await {
        drop(lease);
        advance(SECOND).await;
    }

    rig.pool.resize(2).unwrap();
    let at_once = rig.pool.status().total;
    settle().await;

    assert_eq!(at_once, 2);
    assert_eq!(
        rig.recorder.of("closed"),
        ["closed 1 shrunk", "closed 2 shrunk"]
    );
    assert_eq!(rig.backend.alive(), 2);
}

#[tokio::test(start_paused = true)]
async fn shrinking_closes_the_rest_as_leases_are_returned_and_revokes_none() {
    let rig = Rig::with_max_size(4);
    let mut held = hold(&rig, 4).await;

    rig.pool.resize(2).unwrap();
    settle().await;
    let mut seen = vec![rig.pool.status().total];
    while held.pop().is_some() {
        settle().await;
        seen.push(rig.pool.status().total);
    }

    assert_eq!(seen, [4, 3, 2, 2, 2]);
    assert_eq!(rig.pool.status().closes.by(CloseReason::Shrunk), 2);
    assert_eq!(rig.pool.status().idle, 2);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_not_served_by_a_surplus_resource() {
    let rig = Rig::with_max_size(3);
    let mut held = hold(&rig, 3).await;
    let mut waiting = rig.wait();
    rig.pool.resize(1).unwrap();

    held.pop();
    settle().await;
    held.pop();
    settle().await;
    let too_many = waiting.is_served();
    held.pop();
    settle().await;

    assert!(!too_many);
    assert!(waiting.is_served());
    let status = rig.pool.status();
    assert_eq!((status.in_use, status.total), (1, 1));
    assert_eq!(status.closes.by(CloseReason::Shrunk), 2);
}

#[tokio::test(start_paused = true)]
async fn after_a_shrink_no_more_than_the_new_size_are_ever_opened() {
    // deadpool has 16 live objects here.
    let rig = Rig::with_max_size(16);
    drop(rig.acquire().await);
    rig.pool.resize(4).unwrap();

    let pool = &rig.pool;
    let mut waiting: Vec<_> = (0..16).map(|_| pool.acquire_within(SECOND)).collect();
    let mut leases = Vec::new();
    for acquire in waiting.drain(..) {
        leases.extend(acquire.await.ok());
    }

    assert_eq!(leases.len(), 4);
    assert_eq!((rig.backend.alive(), rig.backend.peak()), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn a_shrink_that_is_taken_back_lends_no_more_than_before() {
    // deadpool creates a fifth object here.
    let rig = Rig::with_max_size(4);
    let held = hold(&rig, 4).await;

    rig.pool.resize(2).unwrap();
    rig.pool.resize(4).unwrap();
    let fifth = rig.pool.acquire_within(SECOND).await;

    assert!(fifth.is_err());
    assert_eq!((rig.backend.alive(), rig.backend.peak()), (4, 4));
    drop(held);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_shrink_that_is_taken_back_keeps_the_leased_resources() {
    let rig = Rig::with_max_size(4);
    let held = hold(&rig, 4).await;
    rig.pool.resize(1).unwrap();
    rig.pool.resize(4).unwrap();

    drop(held);
    settle().await;

    assert_eq!(
        (rig.pool.status().idle, rig.backend.calls(Call::Close)),
        (4, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn opens_on_their_way_when_the_pool_shrinks_are_closed_and_one_is_lent() {
    let rig = Rig::with_max_size(4);
    rig.backend.always(Call::Open, Gate::Slow(SECOND));
    let mut waiting: Vec<_> = (0..4).map(|_| rig.wait()).collect();
    settle().await;

    rig.pool.resize(1).unwrap();
    advance(SECOND).await;

    let served = waiting
        .iter_mut()
        .filter_map(|one| one.is_served().then_some(()))
        .count();
    let status = rig.pool.status();
    assert_eq!((served, status.in_use, status.total), (1, 1, 1));
    assert_eq!(status.closes.by(CloseReason::Shrunk), 3);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_still_closing_keeps_its_slot_when_the_pool_grows() {
    let rig = Rig::with_max_size(2);
    let held = hold(&rig, 2).await;
    rig.backend.always(Call::Close, Gate::Slow(SECOND));
    rig.pool.resize(1).unwrap();
    drop(held);
    settle().await;

    rig.pool.resize(2).unwrap();
    let first = rig.acquire().await;
    let mut second = rig.wait();
    settle().await;
    let while_closing = second.is_served();
    advance(SECOND).await;

    assert!(!while_closing);
    assert!(second.is_served());
    assert_eq!(rig.backend.peak(), 2);
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_size_is_an_error_that_names_the_field_and_changes_nothing() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(2).min_idle(3));

    let zero = rig.pool.resize(0).unwrap_err();
    let less_than_min_idle = rig.pool.resize(2).unwrap_err();
    let least = rig.pool.resize(3);

    assert_eq!((zero.field(), zero.value()), ("max_size", "0"));
    assert_eq!(less_than_min_idle.field(), "max_size");
    assert!(
        less_than_min_idle.allowed().contains('3'),
        "{less_than_min_idle}"
    );
    assert!(least.is_ok());
    assert_eq!(rig.recorder.of("resized"), ["resized 4 3"]);
}

#[tokio::test(start_paused = true)]
async fn zero_is_refused_without_minima_too() {
    let rig = Rig::with_max_size(4);

    let refused = rig.pool.resize(0);

    assert_eq!(refused.unwrap_err().field(), "max_size");
    assert_eq!(rig.pool.status().max_size, 4);
}

#[tokio::test(start_paused = true)]
async fn every_resize_is_observed() {
    let rig = Rig::with_max_size(4);

    rig.pool.resize(9).unwrap();
    rig.pool.resize(1).unwrap();

    assert_eq!(rig.recorder.of("resized"), ["resized 4 9", "resized 9 1"]);
}

#[tokio::test(start_paused = true)]
async fn the_timeout_error_shows_the_size_of_now() {
    let rig = Rig::with_max_size(4);
    let held = hold(&rig, 4).await;
    rig.pool.resize(2).unwrap();

    let error = rig.pool.acquire().await.unwrap_err();

    assert!(error.to_string().contains("4 of 2 in use"), "{error}");
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_load_the_cap_holds_whatever_it_is_changed_to() {
    const LARGEST: usize = 8;
    let alive = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let pool = Pool::from_fn({
        let (alive, most) = (Arc::clone(&alive), Arc::clone(&most));
        move || {
            let living = alive.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(living, Ordering::SeqCst);
            async { Ok::<_, std::io::Error>(()) }
        }
    })
    .close_with({
        let alive = Arc::clone(&alive);
        move |()| {
            alive.fetch_sub(1, Ordering::SeqCst);
            async {}
        }
    })
    .max_size(LARGEST)
    .build()
    .unwrap();
    let load: Vec<_> = (0..16)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move {
                for turn in 0..200 {
                    let lease = pool.acquire().await.unwrap();
                    tokio::task::yield_now().await;
                    if turn % 7 == 0 {
                        Lease::discard(lease);
                    }
                }
            })
        })
        .collect();

    for size in (1..=LARGEST).chain((1..LARGEST).rev()).cycle().take(60) {
        pool.resize(size).unwrap();
        // The load runs in real threads; nothing is concluded from how long this takes.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for task in load {
        task.await.unwrap();
    }
    pool.resize(3).unwrap();

    assert!(most.load(Ordering::SeqCst) <= LARGEST);
    let mut leases = Vec::new();
    while let Ok(lease) = pool.acquire_within(Duration::from_millis(50)).await {
        leases.push(lease);
    }
    let status = pool.status();
    assert_eq!((leases.len(), status.total, status.closing), (3, 3, 0));
    assert_eq!(alive.load(Ordering::SeqCst), 3);
}
