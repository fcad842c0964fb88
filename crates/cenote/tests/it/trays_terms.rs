//! The terms on which a resource changes hands through its tray, whether or not the upkeep comes in
//! time.

use std::time::Duration;

use cenote::config::IdleOrder;
use cenote::{CloseReason, Lease};
use cenote_testkit::clock::settle;
use cenote_testkit::{Call, Rig};

const SECOND: Duration = Duration::from_secs(1);

/// Leases four times in a row through a tray, and returns the serials. The upkeep has seen the pool
/// and sleeps.
async fn trips(rig: &Rig) -> Vec<u64> {
    settle().await;
    let mut serials = Vec::new();
    for _ in 0..4 {
        serials.push(rig.acquire().await.serial);
    }
    serials
}

/// Moves the clock without a turn for any other task: the upkeep is late.
async fn leap(step: Duration) {
    tokio::time::advance(step).await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_expired_on_its_tray_is_not_lent() {
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .max_lifetime(60 * SECOND)
            .lifetime_jitter(0.0)
            .check_after_idle(None)
    });
    drop(rig.acquire().await);
    trips(&rig).await;

    leap(60 * SECOND).await;
    let next = rig.acquire().await;

    assert_eq!(next.serial, 2);
    assert_eq!(rig.pool.status().closes.by(CloseReason::Lifetime), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_invalidated_later_is_lent_until_then_and_no_longer() {
    let rig = Rig::new(|pool| pool.max_size(2).check_after_idle(None));
    rig.leave_idle(2).await;
    rig.pool.invalidate_over(20 * SECOND);
    let left = trips(&rig).await;
    assert_eq!(left, [2; 4]);

    leap(10 * SECOND).await;
    let next = rig.acquire().await;

    assert_eq!(next.serial, 3);
    assert_eq!(rig.pool.status().closes.by(CloseReason::Invalidated), 2);
}

#[tokio::test(start_paused = true)]
async fn with_oldest_first_every_trip_takes_the_oldest() {
    let rig = Rig::new(|pool| pool.max_size(3).idle_order(IdleOrder::Oldest));
    rig.leave_idle(3).await;

    let serials = trips(&rig).await;

    assert_eq!(serials, [1, 2, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_begins_when_it_was_taken_and_belongs_to_its_taker() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    trips(&rig).await;
    leap(3 * SECOND).await;

    let (lease, line) = (rig.acquire().await, line!());
    leap(4 * SECOND).await;

    let holder = &rig.pool.leases()[0];
    assert_eq!(holder.held_for, 4 * SECOND);
    assert_eq!(holder.site.line(), line);
    assert_eq!(Lease::site(&lease).line(), line);
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_how_long_each_lease_was_out() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    trips(&rig).await;
    leap(3 * SECOND).await;
    let lease = rig.acquire().await;
    leap(4 * SECOND).await;

    drop(lease);

    let released = rig.recorder.of("released");
    let last = released.last().expect("every return is told");
    assert!(last.contains("4s"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_resource_on_a_tray_is_checked_when_another_comes_back_broken() {
    let rig = Rig::new(|pool| pool.max_size(2).check_after_idle(3600 * SECOND));
    rig.leave_idle(2).await;
    let (mut broken, other) = (rig.acquire().await, rig.acquire().await);
    drop(other);
    broken.broken = true;

    drop(broken);
    settle().await;

    assert_eq!(rig.backend.calls(Call::Check), 1);
}
