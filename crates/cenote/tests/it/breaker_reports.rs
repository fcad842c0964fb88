//! The reports to a strategy: every accepted return, and every failure with its kind, once each.

use std::time::Duration;

use cenote::Lease;
use cenote::breaker::Failure;
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::hooks::before_release;
use crate::support::scribe::Scribe;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn an_accepted_return_is_a_success() {
    let scribe = Scribe::default();
    let rig = scribe.rig(2);

    let lease = rig.acquire().await;
    assert!(scribe.take_reports().is_empty(), "an open is not a return");
    drop(lease);

    assert_eq!(scribe.take_reports(), [None]);
}

#[tokio::test(start_paused = true)]
async fn a_return_that_needs_cleaning_is_a_success_once_it_is_clean() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);
    rig.backend.once(Call::Clean, Gate::Slow(SECOND));
    let mut lease = rig.acquire().await;
    lease.dirty = true;

    drop(lease);
    settle().await;
    assert!(
        scribe.take_reports().is_empty(),
        "the result is not known yet"
    );
    advance(SECOND).await;

    assert_eq!(scribe.take_reports(), [None]);
}

#[tokio::test(start_paused = true)]
async fn each_failed_open_is_reported_once_as_such() {
    let scribe = Scribe::default();
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .open_timeout(SECOND)
            .breaker(scribe.clone())
    });

    for gate in [Gate::Fail, Gate::Panic, Gate::Hang] {
        rig.backend.once(Call::Open, gate);
        assert!(rig.pool.acquire().await.is_err());
        assert_eq!(scribe.take_reports(), [Some(Failure::Open)], "{gate:?}");
    }

    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_check_is_reported_as_such() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);

    for gate in [Gate::Fail, Gate::Panic, Gate::Hang] {
        drop(rig.acquire().await);
        advance(10 * SECOND).await;
        scribe.take_reports();
        rig.backend.once(Call::Check, gate);
        let lease = rig.acquire().await;
        assert_eq!(scribe.take_reports(), [Some(Failure::Check)], "{gate:?}");
        drop(lease);
    }

    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_heartbeat_is_a_failed_check() {
    let scribe = Scribe::default();
    let rig = Rig::new(|pool| {
        let pool = pool.max_size(1).heartbeat_interval(SECOND);
        pool.breaker(scribe.clone())
    });
    drop(rig.acquire().await);
    scribe.take_reports();
    rig.backend.once(Call::Check, Gate::Fail);

    tokio::time::sleep(2 * SECOND).await;

    assert_eq!(scribe.take_reports(), [Some(Failure::Check)]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_check_on_return_refuses_the_return() {
    let scribe = Scribe::default();
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .check_on_return(true)
            .breaker(scribe.clone())
    });
    rig.backend.once(Call::Check, Gate::Fail);

    drop(rig.acquire().await);
    settle().await;

    assert_eq!(scribe.take_reports(), [Some(Failure::Return)]);
}

#[tokio::test(start_paused = true)]
async fn each_refused_return_is_reported_once_as_such() {
    let scribe = Scribe::default();
    let rig = Rig::new(|pool| {
        let pool = pool.max_size(1).before_release(before_release);
        pool.breaker(scribe.clone())
    });

    for (call, gate) in [
        (Call::IsBroken, Gate::Fail),
        (Call::IsBroken, Gate::Panic),
        (Call::NeedsCleaning, Gate::Panic),
        (Call::Clean, Gate::Fail),
        (Call::Clean, Gate::Panic),
        (Call::Clean, Gate::Hang),
        (Call::BeforeRelease, Gate::Fail),
        (Call::BeforeRelease, Gate::Panic),
        (Call::BeforeRelease, Gate::Hang),
    ] {
        let mut lease = rig.acquire().await;
        lease.dirty = true;
        rig.backend.once(call, gate);
        drop(lease);
        advance(10 * SECOND).await;
        assert_eq!(
            scribe.take_reports(),
            [Some(Failure::Return)],
            "{call:?} {gate:?}"
        );
    }

    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn an_awaited_release_is_reported_the_same() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);

    Lease::release(rig.acquire().await).await;
    let mut lease = rig.acquire().await;
    lease.broken = true;
    Lease::release(lease).await;
    let mut lease = rig.acquire().await;
    lease.dirty = true;
    Lease::release(lease).await;

    assert_eq!(scribe.take_reports(), [None, Some(Failure::Return), None]);
}

#[tokio::test(start_paused = true)]
async fn a_discard_and_a_detach_are_neither_success_nor_failure() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);

    Lease::discard(rig.acquire().await);
    drop(Lease::detach(rig.acquire().await));
    settle().await;

    assert!(scribe.take_reports().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_broken_return_of_an_invalidated_resource_is_not_reported() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);
    let mut lease = rig.acquire().await;
    rig.pool.invalidate();

    lease.broken = true;
    drop(lease);
    settle().await;

    assert_eq!(scribe.take_reports(), []);
}
