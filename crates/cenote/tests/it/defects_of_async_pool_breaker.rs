//! Defects of the circuit breaker of Async\Pool that are still open there, none of which happens
//! here.

use std::time::Duration;

use cenote::AcquireError;
use cenote::breaker::{BreakerState, Failure, Recovery, Verdict};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::scribe::Scribe;

/// A strategy that trips at the first failure and activates at the first success.
fn listened() -> (Rig, Scribe) {
    let scribe = Scribe::default();
    scribe.with(|notes| {
        notes.on_success = Some(Verdict::Activate);
        notes.on_failure = Some(Verdict::Deactivate);
        notes.recovery = Some(Recovery::After(Duration::from_secs(1)));
    });
    (scribe.rig(3), scribe)
}

/// Async\Pool, open: `shouldRecover` was documented, and never called.
#[tokio::test(start_paused = true)]
async fn the_strategy_was_never_asked_whether_to_recover() {
    let (rig, scribe) = listened();

    rig.pool.breaker().trip();
    drop(rig.pool.acquire().await.unwrap_err());
    advance(Duration::from_millis(1500)).await;
    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
    scribe.with(|notes| notes.recovery = Some(Recovery::Now));
    advance(Duration::from_secs(1)).await;

    assert_eq!(scribe.asked().len(), 3);
    assert_eq!(rig.pool.breaker().state(), BreakerState::Recovering);
}

/// Async\Pool, open: a recovering pool lent without limit.
#[tokio::test(start_paused = true)]
async fn a_recovering_pool_lent_everything() {
    let (rig, _) = listened();
    rig.pool.breaker().probe();

    let probe = rig.acquire().await;
    let mut others = [rig.wait(), rig.wait()];
    settle().await;

    assert!(others.iter_mut().all(|other| !other.is_served()));
    assert_eq!(rig.pool.status().in_use, 1);
    drop(probe);
    assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
    let [one, other] = others;
    let both = (one.await.unwrap(), other.await.unwrap());
    assert_eq!(rig.pool.status().in_use, 2);
    drop(both);
    rig.assert_full_service().await;
}

/// Async\Pool, open: failed creates and failed health checks were not reported to the breaker.
#[tokio::test(start_paused = true)]
async fn the_breaker_heard_of_returns_only() {
    let (rig, scribe) = listened();

    rig.backend.once(Call::Open, Gate::Fail);
    rig.pool.acquire().await.unwrap_err();
    assert_eq!(scribe.take_reports(), [Some(Failure::Open)]);
    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
    rig.pool.breaker().reset();
    drop(rig.acquire().await);
    advance(Duration::from_secs(6)).await;
    rig.backend.once(Call::Check, Gate::Fail);
    let told = rig.pool.acquire().await;

    assert_eq!(scribe.take_reports(), [None, Some(Failure::Check)]);
    assert!(matches!(told, Err(AcquireError::Unavailable(_))));
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}
