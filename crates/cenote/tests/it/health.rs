//! Health: a verdict without acquiring anything, and one that recovers by itself when the backend
//! does.

use std::time::Duration;

use cenote::breaker::ConsecutiveFailures;
use cenote::config::OnOpenError;
use cenote::{Health, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const STUCK: Duration = Duration::from_secs(7);

#[tokio::test(start_paused = true)]
async fn a_new_pool_is_unproven_and_asking_opens_nothing() {
    let rig = Rig::with_max_size(1);

    let health = rig.pool.health();
    settle().await;

    assert_eq!(health, Health::Unproven);
    assert!(health.is_ready());
    assert_eq!(rig.backend.calls(Call::Open), 0);
}

#[tokio::test(start_paused = true)]
async fn asking_changes_nothing() {
    let rig = Rig::with_max_size(2);
    drop(rig.acquire().await);
    advance(SECOND * 60).await;
    let before = (rig.pool.status(), rig.recorder.lines());

    for _ in 0..100 {
        rig.pool.health();
    }
    settle().await;

    assert_eq!((rig.pool.status(), rig.recorder.lines()), before);
    assert_eq!(rig.backend.calls(Call::Check), 0);
}

#[tokio::test(start_paused = true)]
async fn with_one_left_a_pool_is_healthy_and_with_none_it_is_busy_and_ready() {
    let rig = Rig::with_max_size(2);
    let first = rig.acquire().await;
    let one_left = rig.pool.health();

    let second = rig.acquire().await;
    let none_left = rig.pool.health();
    drop(first);
    let one_back = rig.pool.health();

    assert_eq!(one_left, Health::Healthy);
    assert_eq!(none_left, Health::Busy);
    assert!(none_left.is_ready());
    assert_eq!(one_back, Health::Healthy);
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn all_out_for_long_without_a_waiter_is_only_busy() {
    let rig = Rig::new(|pool| pool.max_size(1).stuck_after(STUCK));
    let held = rig.acquire().await;

    advance(STUCK * 10).await;

    assert_eq!(rig.pool.health(), Health::Busy);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_stuck_when_a_caller_waits_and_nothing_came_back_for_long() {
    let rig = Rig::new(|pool| pool.max_size(1).stuck_after(STUCK).acquire_timeout(None));
    let held = rig.acquire().await;
    let waiting = rig.wait();

    advance(STUCK - MS).await;
    let before = rig.pool.health();
    advance(MS).await;
    let after = rig.pool.health();

    assert_eq!(before, Health::Busy);
    assert_eq!(after, Health::Stuck { silent_for: STUCK });
    assert!(!after.is_ready());
    drop((held, waiting));
    assert_eq!(rig.pool.health(), Health::Healthy);
}

#[tokio::test(start_paused = true)]
async fn the_time_before_the_first_waiter_does_not_count() {
    let rig = Rig::new(|pool| pool.max_size(1).stuck_after(STUCK).acquire_timeout(None));
    let held = rig.acquire().await;
    advance(STUCK * 10).await;

    let waiting = rig.wait();
    advance(STUCK - MS).await;

    assert_eq!(rig.pool.health(), Health::Busy);
    drop((held, waiting));
}

#[tokio::test(start_paused = true)]
async fn while_work_flows_a_pool_is_busy_however_long_the_queue() {
    let rig = Rig::new(|pool| pool.max_size(1).stuck_after(STUCK).acquire_timeout(None));
    let mut held = rig.acquire().await;
    let mut line: Vec<_> = (0..10).map(|_| rig.wait()).collect();

    let mut seen = Vec::new();
    while line.len() > 1 {
        advance(STUCK - MS).await;
        seen.push(rig.pool.health());
        drop(held);
        held = line.remove(0).await.unwrap();
    }

    assert_eq!(seen, [Health::Busy; 9]);
}

#[tokio::test(start_paused = true)]
async fn a_stuck_pool_is_busy_again_when_one_comes_back() {
    let rig = Rig::new(|pool| pool.max_size(2).stuck_after(STUCK).acquire_timeout(None));
    let (first, second) = (rig.acquire().await, rig.acquire().await);
    let line = [rig.wait(), rig.wait()];
    advance(STUCK).await;
    let stuck = rig.pool.health();

    drop(first);

    assert_eq!(stuck, Health::Stuck { silent_for: STUCK });
    assert_eq!(rig.pool.health(), Health::Busy);
    drop((line, second));
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_down_when_opening_fails_and_nothing_is_left() {
    let rig = Rig::with_max_size(2);
    rig.backend.always(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());

    advance(SECOND * 3).await;

    let health = rig.pool.health();
    assert_eq!(
        health,
        Health::Down {
            down_for: SECOND * 3
        }
    );
    assert!(!health.is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_not_down_while_something_is_left_to_lend() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;
    rig.backend.always(Call::Open, Gate::Fail);

    assert!(rig.pool.acquire().await.is_err());

    assert!(rig.pool.health().is_ready());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_down_while_opens_are_retried_for_a_waiter() {
    let rig = Rig::new(|pool| pool.on_open_error(OnOpenError::Retry).acquire_timeout(None));
    rig.backend.always(Call::Open, Gate::Fail);
    let waiting = rig.wait();

    advance(SECOND).await;

    assert!(matches!(rig.pool.health(), Health::Down { .. }));
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn a_pool_recovers_by_itself_after_an_outage_though_no_caller_acquires() {
    let rig = Rig::with_max_size(2);
    rig.backend.always(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());
    tokio::time::sleep(SECOND * 600).await;
    let down = rig.pool.health();

    rig.backend.heal();
    tokio::time::sleep(SECOND * 60).await;

    assert!(matches!(down, Health::Down { .. }));
    assert_eq!(rig.pool.health(), Health::Healthy);
    assert_eq!(rig.pool.status().acquired, 0);
}

#[tokio::test(start_paused = true)]
async fn a_pool_recovers_by_itself_after_a_storm_of_failed_acquires() {
    let rig = Rig::with_max_size(2);
    rig.backend.always(Call::Open, Gate::Fail);
    for _ in 0..100 {
        assert!(rig.pool.acquire().await.is_err());
    }

    rig.backend.heal();
    tokio::time::sleep(SECOND * 60).await;

    assert_eq!(rig.pool.health(), Health::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_pool_recovers_by_itself_after_hung_and_panicking_opens() {
    let rig = Rig::with_max_size(2);
    for gate in [Gate::Hang, Gate::Panic] {
        rig.backend.always(Call::Open, gate);
        let acquired = rig.pool.acquire_within(SECOND * 20).await;
        assert!(acquired.is_err());
        assert!(matches!(rig.pool.health(), Health::Down { .. }));

        rig.backend.heal();
        tokio::time::sleep(SECOND * 60).await;

        assert_eq!(rig.pool.health(), Health::Healthy, "after {gate:?}");
        rig.pool.invalidate();
        settle().await;
    }
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_down_while_the_breaker_is_inactive() {
    let rig = Rig::with_max_size(2);
    drop(rig.acquire().await);

    rig.pool.breaker().trip();
    advance(SECOND * 3).await;
    let down = rig.pool.health();
    rig.pool.breaker().reset();

    assert_eq!(
        down,
        Health::Down {
            down_for: SECOND * 3
        }
    );
    assert_eq!(rig.pool.health(), Health::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_down_when_the_breaker_has_tripped() {
    let rig = Rig::new(|pool| pool.breaker(ConsecutiveFailures::new(2)));
    let mut lease = rig.acquire().await;
    let other = rig.acquire().await;
    lease.broken = true;
    drop(lease);
    let before = rig.pool.health();

    let mut lease = other;
    lease.broken = true;
    drop(lease);

    assert!(before.is_ready());
    assert!(matches!(rig.pool.health(), Health::Down { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_says_so_whatever_else_is_wrong() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());
    rig.pool.breaker().trip();

    rig.pool.close();

    assert_eq!(rig.pool.health(), Health::Closed);
    assert!(!rig.pool.health().is_ready());
}

#[tokio::test(start_paused = true)]
async fn a_verdict_reads_as_a_sentence() {
    let rig = Rig::new(|pool| pool.max_size(1).stuck_after(STUCK).acquire_timeout(None));
    let mut seen = vec![rig.pool.health().to_string()];
    let held = rig.acquire().await;
    seen.push(rig.pool.health().to_string());
    let waiting = rig.wait();
    advance(STUCK).await;
    seen.push(rig.pool.health().to_string());
    drop(waiting);
    Lease::discard(held);
    rig.pool.breaker().trip();
    advance(SECOND * 3).await;
    seen.push(rig.pool.health().to_string());
    rig.pool.close();
    seen.push(rig.pool.health().to_string());

    assert_eq!(
        seen,
        [
            "unproven: nothing was opened yet",
            "busy",
            "stuck: nothing came back for 7.0s",
            "down for 3.0s",
            "closed"
        ]
    );
}
