//! Heartbeat: idle resources are checked in the background, a few at a time, and waiters go first.

use std::time::Duration;

use cenote::{CloseReason, Lease};
use cenote_testkit::clock::advance;
use cenote_testkit::{Call, Gate, Rig};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
const BEAT: Duration = Duration::from_secs(17);

/// A rig with a heartbeat and nothing else that would check or close.
fn beating(max_size: usize, min_size: usize) -> Rig {
    Rig::new(|pool| {
        pool.max_size(max_size)
            .min_size(min_size)
            .max_opening(max_size)
            .heartbeat_interval(BEAT)
            .check_after_idle(None)
            .idle_timeout(None)
            .max_lifetime(None)
            .upkeep_interval(HOUR)
    })
}

#[tokio::test(start_paused = true)]
async fn idle_resources_are_checked_once_per_interval_and_on_time() {
    let rig = beating(1, 0);
    rig.leave_idle(1).await;

    advance(BEAT - MS).await;
    let before = rig.backend.calls(Call::Check);
    advance(MS).await;
    let first = rig.backend.calls(Call::Check);
    advance(BEAT - MS).await;
    let between = rig.backend.calls(Call::Check);
    advance(MS).await;

    assert_eq!((before, first, between), (0, 1, 1));
    assert_eq!(rig.backend.calls(Call::Check), 2);
    assert_eq!(rig.pool.status().idle, 1);
}

#[tokio::test(start_paused = true)]
async fn without_an_interval_there_is_no_heartbeat() {
    let rig = Rig::with_max_size(1);
    rig.leave_idle(1).await;

    tokio::time::sleep(HOUR).await;

    assert_eq!(rig.backend.calls(Call::Check), 0);
}

#[tokio::test(start_paused = true)]
async fn a_resource_in_use_is_never_checked() {
    let rig = beating(1, 0);
    let held = rig.acquire().await;

    tokio::time::sleep(HOUR).await;

    assert_eq!(rig.backend.calls(Call::Check), 0);
    assert_eq!(rig.pool.status().in_use, 1);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_return_is_proof_of_life_and_puts_the_heartbeat_off() {
    let rig = beating(1, 0);
    rig.leave_idle(1).await;
    advance(BEAT - MS).await;

    drop(rig.acquire().await);
    advance(BEAT - MS).await;
    let before = rig.backend.calls(Call::Check);
    advance(MS).await;

    assert_eq!((before, rig.backend.calls(Call::Check)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn only_a_few_are_checked_at_a_time_and_all_in_the_end() {
    let rig = beating(9, 0);
    rig.leave_idle(9).await;
    rig.backend
        .always(Call::Check, Gate::Slow(Duration::from_millis(100)));

    let mut most = 0;
    advance(BEAT - Duration::from_millis(50)).await;
    for _ in 0..100 {
        advance(Duration::from_millis(10)).await;
        most = most.max(rig.pool.status().checking);
    }

    assert!((1..=3).contains(&most), "{most} of 9 at once");
    assert_eq!(rig.backend.calls(Call::Check), 9);
    assert_eq!(rig.pool.status().idle, 9);
}

#[tokio::test(start_paused = true)]
async fn a_resource_whose_heartbeat_fails_or_panics_is_closed_and_replaced() {
    for gate in [Gate::Fail, Gate::Panic] {
        let rig = beating(3, 2);
        rig.leave_idle(2).await;
        rig.backend.once(Call::Check, gate);

        advance(BEAT).await;
        advance(MS).await;

        let status = rig.pool.status();
        assert_eq!(status.closes.by(CloseReason::FailedCheck), 1, "{gate:?}");
        assert_eq!((status.idle, status.opened), (2, 3), "{gate:?}");
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hung_heartbeat_ends_by_its_limit_and_its_resource_is_replaced() {
    let rig = beating(1, 1);
    rig.leave_idle(1).await;
    rig.backend.once(Call::Check, Gate::Hang);

    advance(BEAT).await;
    let hung = rig.pool.status();
    advance(Duration::from_secs(2)).await;
    advance(MS).await;

    assert_eq!((hung.checking, hung.total), (1, 1));
    let status = rig.pool.status();
    assert_eq!(status.closes.by(CloseReason::FailedCheck), 1);
    assert_eq!((status.idle, status.opened), (1, 2));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn when_one_resource_is_dead_equally_stale_ones_are_checked_too() {
    let rig = beating(6, 0);
    rig.leave_idle(6).await;
    rig.backend.always(Call::Check, Gate::Fail);

    advance(BEAT).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.checking), (0, 0));
    assert_eq!(status.closes.by(CloseReason::FailedCheck), 6);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_under_check_counts_as_such_and_is_not_missing() {
    let rig = Rig::new(|pool| {
        pool.max_size(9)
            .min_size(3)
            .min_idle(3)
            .heartbeat_interval(BEAT)
            .idle_timeout(None)
    });
    drop(rig.acquire().await);
    advance(MS).await;
    let before = rig.pool.status();
    rig.backend
        .always(Call::Check, Gate::Slow(Duration::from_secs(1)));

    advance(BEAT).await;
    let beating = rig.pool.status();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = rig.pool.status();

    assert!(beating.checking > 0);
    assert_eq!((beating.total, beating.opening), (before.total, 0));
    assert_eq!((after.idle, after.opened), (before.idle, before.opened));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_comes_during_a_heartbeat_gets_that_resource_when_it_passes() {
    let rig = beating(1, 0);
    rig.leave_idle(1).await;
    rig.backend
        .always(Call::Check, Gate::Slow(Duration::from_millis(500)));
    advance(BEAT).await;

    let mut waiting = rig.wait();
    advance(Duration::from_millis(499)).await;
    let early = waiting.is_served();
    advance(MS).await;

    assert!(!early);
    assert_eq!(Lease::id(&waiting.await.unwrap()), 1);
    assert_eq!(rig.backend.calls(Call::Check), 1);
}

#[tokio::test(start_paused = true)]
async fn the_heartbeat_leaves_something_for_callers() {
    let rig = beating(4, 0);
    rig.leave_idle(4).await;
    rig.backend
        .always(Call::Check, Gate::Slow(Duration::from_secs(1)));

    advance(BEAT).await;

    assert!(rig.pool.status().checking > 0);
    assert!(rig.pool.try_acquire().unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_heartbeat_steps_back_while_a_caller_waits() {
    let rig = beating(2, 0);
    rig.leave_idle(2).await;
    rig.pool.suspend();
    let pool = rig.pool.clone();
    let waiting = tokio::spawn(async move { pool.acquire_within(None).await });

    advance(BEAT).await;
    let checks = rig.backend.calls(Call::Check);
    rig.pool.resume();

    assert_eq!(checks, 0);
    assert!(waiting.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_stepped_back_comes_as_soon_as_no_caller_waits() {
    let rig = beating(2, 0);
    rig.leave_idle(2).await;
    rig.pool.suspend();
    let waiting = rig.wait();
    advance(BEAT).await;

    drop(waiting);
    advance(MS).await;

    assert_eq!(rig.backend.calls(Call::Check), 2);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_stepped_back_comes_after_a_timeout_too() {
    let rig = beating(2, 0);
    rig.leave_idle(2).await;
    rig.pool.suspend();

    let timed_out = rig.pool.acquire_within(BEAT + MS).await;
    advance(MS).await;

    assert!(timed_out.is_err());
    assert_eq!(rig.backend.calls(Call::Check), 2);
}
