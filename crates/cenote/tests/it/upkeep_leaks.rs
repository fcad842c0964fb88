//! Leaks: a lease that is out for too long is reported once, with its call site, again when it is
//! returned, and is never revoked.

use std::time::Duration;

use cenote::Lease;
use cenote_testkit::Rig;
use cenote_testkit::clock::{advance, settle};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
const LEAK: Duration = Duration::from_secs(47);

fn watchful(max_size: usize) -> Rig {
    Rig::new(|pool| {
        pool.max_size(max_size)
            .leak_after(LEAK)
            .max_lifetime(None)
            .upkeep_interval(HOUR)
    })
}

#[tokio::test(start_paused = true)]
async fn a_leak_is_reported_when_its_time_is_over_and_not_before() {
    let rig = watchful(1);
    let held = rig.acquire().await;

    advance(LEAK - MS).await;
    let before = (rig.recorder.of("leaked").len(), rig.pool.status().leaked);
    advance(MS).await;
    let after = (rig.recorder.of("leaked").len(), rig.pool.status().leaked);

    assert_eq!((before, after), ((0, 0), (1, 1)));
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_leak_is_reported_with_the_place_that_took_it() {
    let rig = watchful(2);
    let line = line!() + 1;
    let held = rig.acquire().await;

    advance(LEAK).await;

    let leaked = rig.recorder.of("leaked");
    let place = format!("{}:{line}:", file!());
    assert!(leaked[0].starts_with("leaked 1 "), "{leaked:?}");
    assert!(leaked[0].contains(&place), "{leaked:?} is not at {place}");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_leak_is_reported_only_once_however_long_it_lasts() {
    let rig = watchful(1);
    let held = rig.acquire().await;

    tokio::time::sleep(HOUR * 24).await;

    assert_eq!(rig.recorder.of("leaked").len(), 1);
    assert_eq!(rig.pool.status().leaked, 1);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_leaked_lease_is_never_revoked() {
    let rig = watchful(1);
    let held = rig.acquire().await;

    tokio::time::sleep(HOUR * 24).await;

    let status = rig.pool.status();
    assert_eq!(
        (status.in_use, status.opened, status.closes.total()),
        (1, 1, 0)
    );
    assert_eq!((held.serial, rig.backend.alive()), (1, 1));
    assert!(rig.pool.acquire().await.is_err());
    drop(held);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_leak_that_is_returned_is_reported_as_late_and_lent_again() {
    let rig = watchful(1);
    let held = rig.acquire().await;
    advance(LEAK * 2).await;

    drop(held);
    let late = rig.recorder.of("returned_late");
    let next = rig.acquire().await;

    assert_eq!(late, [format!("returned_late 1 held={:?}", LEAK * 2)]);
    assert_eq!(Lease::id(&next), 1);
}

#[tokio::test(start_paused = true)]
async fn a_leak_that_is_discarded_in_the_end_is_late_too() {
    let rig = watchful(1);
    let held = rig.acquire().await;
    advance(LEAK).await;

    Lease::discard(held);
    settle().await;

    assert_eq!(rig.recorder.of("returned_late").len(), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_returned_in_time_is_neither_leaked_nor_late() {
    let rig = watchful(1);
    let held = rig.acquire().await;
    advance(LEAK - MS).await;

    drop(held);
    advance(HOUR).await;

    assert!(rig.recorder.of("leaked").is_empty());
    assert!(rig.recorder.of("returned_late").is_empty());
    assert_eq!(rig.pool.status().leaked, 0);
}

#[tokio::test(start_paused = true)]
async fn each_lease_is_timed_from_when_it_was_taken() {
    let rig = watchful(1);
    drop(rig.acquire().await);
    advance(LEAK - MS).await;
    let second = rig.acquire().await;

    advance(LEAK - MS).await;
    let before = rig.pool.status().leaked;
    advance(MS).await;

    assert_eq!((before, rig.pool.status().leaked), (0, 1));
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_leaked_before_is_reported_again_when_it_leaks_again() {
    let rig = watchful(1);

    for _ in 0..2 {
        let held = rig.acquire().await;
        advance(LEAK).await;
        drop(held);
    }
    drop(rig.acquire().await);

    assert_eq!(rig.recorder.of("leaked").len(), 2);
    assert_eq!(rig.recorder.of("returned_late").len(), 2);
    assert_eq!(rig.pool.status().leaked, 2);
}

#[tokio::test(start_paused = true)]
async fn leaks_at_different_times_are_reported_each_at_its_own() {
    let rig = watchful(3);
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(rig.acquire().await);
        advance(MS * 7).await;
    }

    advance(LEAK - MS * 21).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(rig.pool.status().leaked);
        advance(MS * 7).await;
    }

    assert_eq!(seen, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_leak_is_reported_while_others_wait_for_it() {
    let rig = watchful(1);
    let held = rig.acquire().await;
    advance(LEAK - MS).await;
    let waiting = rig.wait();

    advance(MS).await;

    assert_eq!(rig.recorder.of("leaked").len(), 1);
    drop((waiting, held));
}

#[tokio::test(start_paused = true)]
async fn the_time_in_the_queue_is_no_part_of_the_lease() {
    let rig = Rig::new(|pool| pool.max_size(1).leak_after(LEAK).acquire_timeout(None));
    let held = rig.acquire().await;
    let waiting = rig.wait();
    advance(LEAK).await;

    drop(held);
    let lease = waiting.await.unwrap();
    advance(LEAK - MS).await;

    assert_eq!(rig.recorder.of("leaked").len(), 1);
    drop(lease);
    assert_eq!(rig.recorder.of("returned_late").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_nothing_is_a_leak() {
    let rig = Rig::new(|pool| pool.max_size(1).leak_after(None));
    let held = rig.acquire().await;

    tokio::time::sleep(HOUR).await;
    drop(held);

    assert_eq!(rig.pool.status().leaked, 0);
    assert!(rig.recorder.of("leaked").is_empty());
    assert!(rig.recorder.of("returned_late").is_empty());
}
