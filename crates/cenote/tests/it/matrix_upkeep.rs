//! Eviction, lifetime, heartbeat and refill, crossed with every way in which every callback can
//! fail, while callers come and are dropped: no slot is lost, and upkeep restores the sizes that it
//! must keep.

use std::time::Duration;

use cenote::Builder;
use cenote_testkit::{GatedManager, Rig};
use tokio::time::{sleep, timeout};

use crate::matrix::{
    Case, IN_TIME, LONG, assert_nothing_lost, assert_told, breathe, competitor, fill,
    for_every_case,
};
use crate::support::status_rules::checked_status;

const PERIOD: Duration = Duration::from_secs(8);

type Settings = fn(Builder<GatedManager>) -> Builder<GatedManager>;

/// The work of the upkeep is due after `PERIOD`. At that moment a caller comes, and is dropped at
/// some point.
async fn upkeep(settings: Settings, least: usize, case: Case) {
    let least = least.min(case.max_size);
    let rig = case.rig(|pool| settings(pool.min_size(least)));
    fill(&rig).await;
    case.arm(&rig);

    sleep(PERIOD - Duration::from_millis(1)).await;
    let mut crowd = Vec::new();
    if case.crowd {
        crowd.extend([competitor(&rig.pool), competitor(&rig.pool)]);
    }
    let served = timeout(IN_TIME, case.cut.apply(rig.pool.acquire())).await;
    drop(served.expect("nothing was heard in time"));
    checked_status(&rig.pool);
    sleep(PERIOD).await;
    checked_status(&rig.pool);

    assert_told(crowd).await;
    assert_finds_back(&rig, least).await;
    assert_nothing_lost(&rig).await;
}

/// Asserts that once the backend is healthy, the resources that must be open are open and idle.
async fn assert_finds_back(rig: &Rig, least: usize) {
    rig.backend.heal();
    sleep(LONG).await;
    let status = rig.pool.status();
    assert!(status.idle >= least, "{status:#?}");
    assert_eq!(
        (status.total, status.closing, rig.backend.alive()),
        (status.idle, 0, status.idle),
        "{status:#?}"
    );
}

/// A resource was discarded, and upkeep must open another.
async fn refill(case: Case) {
    let rig = case.rig(|pool| {
        pool.min_size(case.max_size)
            .min_idle(1)
            .idle_timeout(None)
            .max_lifetime(None)
    });
    fill(&rig).await;
    let lease = rig.acquire().await;
    case.arm(&rig);

    cenote::Lease::discard(lease);
    let mut crowd = Vec::new();
    if case.crowd {
        crowd.extend([competitor(&rig.pool), competitor(&rig.pool)]);
    }
    let served = timeout(IN_TIME, case.cut.apply(rig.pool.acquire())).await;
    drop(served.expect("nothing was heard in time"));
    breathe().await;
    checked_status(&rig.pool);

    assert_told(crowd).await;
    assert_finds_back(&rig, case.max_size).await;
    assert_nothing_lost(&rig).await;
}

#[tokio::test(start_paused = true)]
async fn eviction_loses_nothing_whatever_fails_and_wherever_a_caller_is_dropped() {
    let settings: Settings = |pool| pool.idle_timeout(PERIOD).max_lifetime(None);
    for_every_case(move |case| upkeep(settings, 1, case)).await;
}

#[tokio::test(start_paused = true)]
async fn eviction_of_everything_loses_nothing_whatever_fails_and_wherever_a_caller_is_dropped() {
    let settings: Settings = |pool| pool.idle_timeout(PERIOD).max_lifetime(None);
    for_every_case(move |case| upkeep(settings, 0, case)).await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_lifetime_loses_nothing_whatever_fails_and_wherever_a_caller_is_dropped() {
    let settings: Settings = |pool| {
        pool.max_lifetime(PERIOD)
            .lifetime_jitter(0.0)
            .idle_timeout(None)
    };
    for_every_case(move |case| upkeep(settings, 2, case)).await;
}

#[tokio::test(start_paused = true)]
async fn the_heartbeat_loses_nothing_whatever_fails_and_wherever_a_caller_is_dropped() {
    let settings: Settings = |pool| {
        pool.heartbeat_interval(PERIOD)
            .idle_timeout(None)
            .max_lifetime(None)
    };
    for_every_case(move |case| upkeep(settings, 3, case)).await;
}

#[tokio::test(start_paused = true)]
async fn a_refill_loses_nothing_whatever_fails_and_wherever_a_caller_is_dropped() {
    for_every_case(refill).await;
}
