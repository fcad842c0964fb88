//! Suspension: acquires wait and their deadlines run, leases go on, and resume serves in order.

use std::time::Duration;

use cenote::error::Phase;
use cenote::{AcquireError, CloseReason, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn an_acquire_waits_though_a_resource_is_idle() {
    let rig = Rig::with_max_size(2);
    drop(rig.acquire().await);
    rig.pool.suspend();

    let mut waiting = rig.wait();
    advance(SECOND).await;
    let suspended = (waiting.is_served(), rig.pool.status());
    rig.pool.resume();

    assert!(!suspended.0);
    assert_eq!((suspended.1.idle, suspended.1.waiting), (1, 1));
    assert!(waiting.is_served());
    assert_eq!(Lease::id(&waiting.await.unwrap()), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_opened_for_a_waiter() {
    let rig = Rig::with_max_size(2);
    rig.pool.suspend();

    let waiting = rig.wait();
    advance(SECOND * 3).await;
    let opened = rig.backend.calls(Call::Open);
    rig.pool.resume();

    assert_eq!(opened, 0);
    assert_eq!(Lease::id(&waiting.await.unwrap()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_try_finds_nothing() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);

    rig.pool.suspend();
    let tried = rig.pool.try_acquire();

    assert!(matches!(tried, Ok(None)));
    rig.pool.resume();
    assert!(rig.pool.try_acquire().unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn deadlines_run_and_the_error_says_why() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    rig.pool.suspend();

    let error = rig.pool.acquire_within(SECOND * 2).await.unwrap_err();

    assert!(error.to_string().contains("suspended"), "{error}");
    assert!(error.is_retryable());
    let AcquireError::TimedOut(timed_out) = error else {
        panic!("{error}");
    };
    assert_eq!(timed_out.phase(), Phase::Suspended);
    assert_eq!(timed_out.waited(), SECOND * 2);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_timed_out_or_left_gets_nothing_on_resume() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    rig.pool.suspend();
    let leaves = rig.wait();
    assert!(rig.pool.acquire_within(MS).await.is_err());

    drop(leaves);
    rig.pool.resume();

    let status = rig.pool.status();
    assert_eq!((status.idle, status.waiting, status.in_use), (1, 0, 0));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn resume_serves_in_order_of_arrival() {
    let rig = Rig::with_max_size(2);
    drop((rig.acquire().await, rig.acquire().await));
    rig.pool.suspend();
    let (mut first, mut second, mut third) = (rig.wait(), rig.wait(), rig.wait());

    rig.pool.resume();

    assert!(first.is_served() && second.is_served());
    assert!(!third.is_served());
    drop(first.await.unwrap());
    assert!(third.is_served());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_is_woken_by_resume() {
    let rig = Rig::with_max_size(1);
    rig.pool.suspend();
    let pool = rig.pool.clone();
    let task = tokio::spawn(async move { pool.acquire_within(None).await.is_ok() });
    advance(SECOND * 60).await;

    rig.pool.resume();
    settle().await;

    assert!(task.is_finished());
    assert!(task.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn leases_go_on_and_their_resources_become_idle() {
    let rig = Rig::with_max_size(1);
    let mut held = rig.acquire().await;
    rig.pool.suspend();
    let mut waiting = rig.wait();

    held.dirty = true;
    Lease::release(held).await;
    let returned = rig.pool.status();
    let lent = waiting.is_served();
    rig.pool.resume();

    assert_eq!((returned.idle, returned.in_use), (1, 0));
    assert_eq!(rig.backend.calls(Call::Clean), 1);
    assert!(!lent);
    assert!(waiting.is_served());
}

#[tokio::test(start_paused = true)]
async fn an_open_on_its_way_is_kept_for_later() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Slow(SECOND));
    let mut waiting = rig.wait();
    settle().await;

    rig.pool.suspend();
    advance(SECOND).await;
    let opened = (waiting.is_served(), rig.pool.status().idle);
    rig.pool.resume();

    assert_eq!(opened, (false, 1));
    assert!(waiting.is_served());
}

#[tokio::test(start_paused = true)]
async fn a_grant_from_before_the_suspension_can_be_taken() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut waiting = rig.wait();
    drop(held);

    rig.pool.suspend();

    assert!(waiting.is_served());
    assert!(waiting.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn eviction_goes_on() {
    let rig = Rig::new(|pool| pool.idle_timeout(SECOND * 47));
    drop(rig.acquire().await);

    rig.pool.suspend();
    advance(SECOND * 47).await;

    assert_eq!(rig.pool.status().closes.by(CloseReason::Idle), 1);
    rig.pool.resume();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn suspending_twice_is_suspending_once() {
    let rig = Rig::with_max_size(1);
    rig.pool.suspend();
    rig.pool.suspend();

    rig.pool.resume();

    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_resume_of_a_pool_that_is_not_suspended_changes_nothing() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut waiting = rig.wait();

    rig.pool.resume();
    settle().await;

    assert!(!waiting.is_served());
    drop((held, waiting));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_pool_with_waiters_is_not_called_stuck() {
    let rig = Rig::new(|pool| pool.acquire_timeout(None));
    rig.pool.suspend();
    let waiting = rig.wait();

    advance(SECOND * 60).await;

    let health = rig.pool.health();
    assert!(!matches!(health, cenote::Health::Stuck { .. }), "{health}");
    drop(waiting);
}
