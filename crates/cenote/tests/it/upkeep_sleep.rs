//! The upkeep task sleeps while nothing is due, and while it can do nothing about due work.

use std::time::Duration;

use cenote::Lease;
use cenote_testkit::clock::settle;
use cenote_testkit::{Call, Gate, Rig};
use tokio::runtime::Handle;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Returns how often the runtime went to sleep during an hour.
async fn sleeps_in_an_hour() -> u64 {
    let metrics = Handle::current().metrics();
    settle().await;
    let before = metrics.worker_park_count(0);
    tokio::time::sleep(HOUR).await;
    let sleeps = metrics.worker_park_count(0) - before;
    assert!(sleeps > 0, "nothing was counted");
    sleeps
}

/// An hour has 120 upkeep intervals of 30 s. A pool that wakes ten times as often spins.
const MANY: u64 = 1200;

#[tokio::test(start_paused = true)]
async fn an_idle_pool_sleeps() {
    let rig = Rig::new(|pool| pool.min_size(2).max_lifetime(None));
    drop(rig.acquire().await);

    let sleeps = sleeps_in_an_hour().await;

    assert!(sleeps < MANY, "{sleeps}");
    assert_eq!(rig.pool.status().idle, 2);
}

#[tokio::test(start_paused = true)]
async fn upkeep_sleeps_no_longer_and_no_shorter_than_the_interval_says() {
    let rig = Rig::new(|pool| {
        pool.idle_timeout(None)
            .max_lifetime(None)
            .upkeep_interval(HOUR)
    });
    drop(rig.acquire().await);

    let sleeps = sleeps_in_an_hour().await;

    assert!(sleeps < 10, "{sleeps}");
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_over_time_in_every_way_and_can_do_nothing_about_it_sleeps() {
    let rig = Rig::new(|pool| {
        pool.max_size(3)
            .min_size(3)
            .min_idle(2)
            .idle_timeout(SECOND)
            .max_lifetime(SECOND * 10)
            .leak_after(SECOND)
            .acquire_timeout(None)
    });
    let held = (
        rig.acquire().await,
        rig.acquire().await,
        rig.acquire().await,
    );
    let waiting = rig.wait();

    let sleeps = sleeps_in_an_hour().await;

    assert!(sleeps < MANY, "{sleeps}");
    assert_eq!(rig.pool.status().in_use, 3);
    drop((waiting, held));
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_cannot_open_its_missing_resources_sleeps() {
    let rig = Rig::new(|pool| pool.max_size(8).min_size(8).max_lifetime(SECOND * 10));
    rig.backend.always(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());

    let sleeps = sleeps_in_an_hour().await;

    assert!(sleeps < MANY, "{sleeps}");
    assert!(rig.pool.status().open_failed < 2000);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_pool_that_lacks_something_sleeps() {
    let rig = Rig::new(|pool| pool.min_size(3).min_idle(2).acquire_timeout(None));
    let lease = rig.acquire().await;
    rig.pool.suspend();
    Lease::discard(lease);
    let waiting = rig.wait();

    let sleeps = sleeps_in_an_hour().await;

    assert!(sleeps < MANY, "{sleeps}");
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn an_inactive_pool_that_lacks_something_sleeps() {
    let rig = Rig::new(|pool| pool.min_size(3).min_idle(2));
    let lease = rig.acquire().await;
    rig.pool.breaker().trip();
    Lease::discard(lease);

    let sleeps = sleeps_in_an_hour().await;

    assert!(sleeps < MANY, "{sleeps}");
}

#[tokio::test(start_paused = true)]
async fn a_pool_with_a_hung_open_and_a_waiter_sleeps() {
    let rig = Rig::new(|pool| {
        pool.max_size(8)
            .max_opening(2)
            .open_timeout(None)
            .acquire_timeout(None)
    });
    rig.backend.always(Call::Open, Gate::Hang);
    let waiting = rig.wait();

    let sleeps = sleeps_in_an_hour().await;

    assert!(sleeps < MANY, "{sleeps}");
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_dates_lie_ahead_sleeps() {
    let rig = Rig::new(|pool| {
        pool.idle_timeout(HOUR * 2)
            .heartbeat_interval(HOUR * 2)
            .max_lifetime(None)
    });
    drop(rig.acquire().await);

    let sleeps = sleeps_in_an_hour().await;

    assert!(sleeps < MANY, "{sleeps}");
    assert_eq!(rig.pool.status().idle, 1);
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_spare_ones_are_unused_for_too_long_sleeps() {
    let rig = Rig::new(|pool| pool.min_idle(1).idle_timeout(SECOND).max_lifetime(None));
    drop(rig.acquire().await);

    let sleeps = sleeps_in_an_hour().await;

    assert!(sleeps < MANY, "{sleeps}");
    assert_eq!(rig.pool.status().idle, 1);
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_heartbeats_hang_sleeps() {
    let rig = Rig::new(|pool| {
        pool.heartbeat_interval(SECOND)
            .check_timeout(HOUR * 2)
            .idle_timeout(None)
            .max_lifetime(None)
    });
    rig.leave_idle(3).await;
    rig.backend.always(Call::Check, Gate::Hang);

    let sleeps = sleeps_in_an_hour().await;

    assert!(sleeps < MANY, "{sleeps}");
    let status = rig.pool.status();
    assert_eq!((status.checking, status.idle), (2, 1));
}
