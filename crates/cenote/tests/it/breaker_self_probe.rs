//! A recovering pool proves by itself that its backend is back, before it lends anything.

use std::time::Duration;

use cenote::breaker::{BreakerState, ConsecutiveFailures, Failure};
use cenote::{AcquireError, CloseReason};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::scribe::Scribe;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn one_resource_is_opened_and_checked_though_no_caller_asks() {
    let rig = Rig::with_max_size(3);
    drop(rig.acquire().await);
    rig.pool.invalidate();

    rig.pool.breaker().probe();
    settle().await;

    assert_eq!(rig.backend.calls(Call::Check), 1);
    assert_eq!(
        (rig.backend.calls(Call::Open), rig.pool.status().idle),
        (2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn no_caller_is_lent_anything_before_the_proof() {
    let rig = Rig::with_max_size(3);
    rig.leave_idle(2).await;
    rig.backend.always(Call::Check, Gate::Slow(SECOND / 2));
    rig.pool.breaker().probe();
    let mut waiting = rig.wait();

    assert!(rig.pool.try_acquire().unwrap().is_none());
    assert!(rig.pool.try_acquire_or_open().await.unwrap().is_none());
    advance(SECOND / 4).await;
    assert!(!waiting.is_served());
    advance(SECOND / 2).await;

    drop(waiting.await.unwrap());
    assert_eq!(rig.backend.calls(Call::Check), 1);
}

#[tokio::test(start_paused = true)]
async fn a_success_is_reported_so_that_no_caller_is_a_probe() {
    let rig = Rig::new(|pool| {
        let strategy = ConsecutiveFailures::new(1).recover_after(SECOND, SECOND);
        pool.max_size(3).breaker(strategy)
    });
    rig.backend.once(Call::Open, Gate::Fail);
    drop(rig.pool.acquire().await.unwrap_err());
    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);

    advance(2 * SECOND).await;

    assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
    assert_eq!(rig.pool.status().acquired, 0, "no caller was needed");
}

#[tokio::test(start_paused = true)]
async fn a_failed_open_or_check_trips_the_breaker_again_and_costs_no_caller() {
    for call in [Call::Open, Call::Check] {
        let rig = Rig::new(|pool| {
            let strategy = ConsecutiveFailures::new(1).recover_after(SECOND, SECOND);
            pool.max_size(3).breaker(strategy)
        });
        rig.pool.breaker().trip();
        rig.backend.always(call, Gate::Fail);

        for _ in 0..20 {
            advance(SECOND).await;
            let refused = rig.pool.acquire().await;
            assert!(
                matches!(refused, Err(AcquireError::Unavailable(_))),
                "{call:?}: {refused:?}"
            );
        }

        rig.backend.heal();
        advance(5 * SECOND).await;
        assert_eq!(rig.pool.breaker().state(), BreakerState::Active, "{call:?}");
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_verdict_the_proof_is_tried_until_it_succeeds() {
    for gate in [Gate::Fail, Gate::Panic, Gate::Hang] {
        for call in [Call::Open, Call::Check] {
            let scribe = Scribe::default();
            let rig = Rig::new(|pool| pool.max_size(2).breaker(scribe.clone()));
            for _ in 0..3 {
                rig.backend.once(call, gate);
            }

            rig.pool.breaker().probe();
            for _ in 0..60 {
                advance(SECOND).await;
            }

            assert_eq!(rig.pool.status().idle, 1, "{call:?} {gate:?}");
            assert_eq!(rig.pool.breaker().state(), BreakerState::Recovering);
            let reports = scribe.take_reports();
            let kind = match call {
                Call::Open => Failure::Open,
                _ => Failure::Check,
            };
            let failures = reports.iter().filter(|report| **report == Some(kind));
            let successes = reports.iter().filter(|report| report.is_none());
            assert_eq!(
                (failures.count(), successes.count()),
                (3, 1),
                "{call:?} {gate:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_pool_checks_an_idle_resource_and_replaces_it_if_it_is_dead() {
    let rig = Rig::with_max_size(2);
    rig.leave_idle(2).await;
    rig.backend.once(Call::Check, Gate::Fail);

    rig.pool.breaker().probe();
    settle().await;

    let closes = rig.pool.status().closes;
    assert_eq!(closes.by(CloseReason::FailedCheck), 1);
    drop(rig.acquire().await);
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn where_all_are_out_the_first_that_comes_back_is_checked() {
    let rig = Rig::with_max_size(2);
    let (one, other) = (rig.acquire().await, rig.acquire().await);
    rig.pool.breaker().probe();
    let mut waiting = rig.wait();

    drop(one);
    assert!(!waiting.is_served(), "it is not checked yet");
    settle().await;

    assert_eq!(rig.backend.calls(Call::Check), 1);
    assert!(waiting.is_served());
    drop(other);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_closed_or_reset_meanwhile_forgets_the_proof() {
    let ends: [fn(&Rig); 3] = [
        |rig| rig.pool.close(),
        |rig| rig.pool.breaker().reset(),
        |rig| rig.pool.breaker().trip(),
    ];
    for end in ends {
        let rig = Rig::with_max_size(2);
        rig.backend.once(Call::Open, Gate::Slow(SECOND));
        rig.pool.breaker().probe();
        settle().await;

        end(&rig);
        advance(2 * SECOND).await;

        assert_eq!(rig.backend.calls(Call::Check), 0);
        rig.pool.breaker().reset();
        if !rig.pool.is_closed() {
            rig.assert_full_service().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_are_told_the_error_of_the_probe_that_was_opened_for_them() {
    let rig = Rig::with_max_size(2);
    rig.backend.once(Call::Open, Gate::Fail);
    rig.pool.breaker().probe();

    let (first, second) = tokio::join!(rig.pool.acquire(), rig.pool.acquire());

    assert!(matches!(first, Err(AcquireError::Open { .. })));
    drop(second.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_times_out_says_that_the_breaker_recovers() {
    let rig = Rig::with_max_size(2);
    rig.backend.always(Call::Open, Gate::Hang);
    rig.pool.breaker().probe();

    let late = rig.pool.acquire_within(SECOND).await.unwrap_err();

    let text = late.to_string();
    assert!(
        text.ends_with("the breaker is recovering: see `probes`"),
        "{text}"
    );
}
