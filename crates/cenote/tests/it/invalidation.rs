//! Invalidation: every resource that is open now is retired, at once or spread, and none that is
//! opened later.

use std::time::Duration;

use cenote::{CloseReason, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A rig with `count` idle resources, and nothing that would close them.
async fn idling(count: usize) -> Rig {
    let rig = Rig::new(|pool| {
        pool.max_size(count)
            .idle_timeout(None)
            .max_lifetime(None)
            .leak_after(None)
            .upkeep_interval(HOUR)
    });
    rig.leave_idle(count).await;
    rig
}

#[tokio::test(start_paused = true)]
async fn idle_resources_are_closed_at_once() {
    let rig = idling(3).await;

    rig.pool.invalidate();
    let at_once = rig.pool.status().idle;
    settle().await;

    assert_eq!(at_once, 0);
    assert_eq!(rig.pool.status().closes.by(CloseReason::Invalidated), 3);
    assert_eq!(rig.backend.alive(), 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn leases_go_on_and_their_resources_are_closed_on_return() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;

    rig.pool.invalidate();
    advance(SECOND).await;
    let still_out = rig.pool.status().in_use;
    drop(held);
    settle().await;

    assert_eq!(still_out, 1);
    assert_eq!(rig.recorder.of("closed"), ["closed 1 invalidated"]);
    assert_eq!(rig.pool.status().idle, 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiter_for_a_lease_that_is_out_gets_a_new_resource() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let pool = rig.pool.clone();
    let waiting = tokio::spawn(async move { pool.acquire().await.unwrap().serial });
    settle().await;

    rig.pool.invalidate();
    drop(held);

    assert_eq!(waiting.await.unwrap(), 2);
    assert_eq!(rig.backend.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_being_opened_is_retired_too_and_its_waiter_gets_a_new_one() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Slow(SECOND));
    let waiting = rig.wait();
    advance(SECOND / 2).await;

    rig.pool.invalidate();
    advance(SECOND / 2).await;
    let lease = waiting.await.unwrap();

    assert_eq!(lease.serial, 2);
    assert_eq!(rig.recorder.of("closed"), ["closed 1 invalidated"]);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_being_opened_is_retired_too_where_there_is_room_for_another() {
    let rig = Rig::with_max_size(2);
    rig.backend.once(Call::Open, Gate::Slow(SECOND));
    rig.backend.always(Call::Close, Gate::Slow(SECOND * 3));
    let mut waiting = rig.wait();
    advance(SECOND / 2).await;

    rig.pool.invalidate();
    advance(SECOND / 2).await;
    settle().await;

    assert!(waiting.is_served(), "there was room, and it had to wait");
    assert_eq!(waiting.await.unwrap().serial, 2);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_is_given_up_is_retired_and_the_next_waiter_gets_a_new_resource() {
    let rig = Rig::with_max_size(2);
    let (held, other) = (rig.acquire().await, rig.acquire().await);
    let first = rig.wait();
    let pool = rig.pool.clone();
    let second = tokio::spawn(async move { pool.acquire().await.unwrap().serial });
    settle().await;
    drop(held);

    rig.pool.invalidate();
    drop(first);

    assert_eq!(second.await.unwrap(), 3);
    drop(other);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_under_cleaning_or_check_is_retired_too() {
    let rig = Rig::with_max_size(2);
    let (mut dirty, idle) = (rig.acquire().await, rig.acquire().await);
    drop(idle);
    advance(SECOND * 10).await;
    rig.backend.always(Call::Clean, Gate::Slow(SECOND));
    rig.backend.always(Call::Check, Gate::Slow(SECOND));
    dirty.dirty = true;
    drop(dirty);
    assert!(rig.pool.try_acquire().unwrap().is_none());
    settle().await;
    let before = rig.pool.status();

    rig.pool.invalidate();
    advance(SECOND).await;

    assert_eq!((before.cleaning, before.checking), (1, 1));
    assert_eq!(rig.pool.status().closes.by(CloseReason::Invalidated), 2);
    assert_eq!(rig.backend.alive(), 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_opened_later_is_not_affected() {
    let rig = idling(2).await;
    rig.pool.invalidate();

    let (new, newer) = (rig.acquire().await, rig.acquire().await);
    drop((new, newer));
    settle().await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.closes.total()), (2, 2));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_slot_of_a_retired_resource_can_be_used_again() {
    let rig = idling(1).await;

    for _ in 0..3 {
        rig.pool.invalidate();
        drop(rig.acquire().await);
        drop(rig.acquire().await);
    }

    assert_eq!(rig.pool.status().opened, 4);
}

#[tokio::test(start_paused = true)]
async fn an_invalidation_can_be_spread_evenly_over_a_time() {
    let rig = idling(5).await;

    rig.pool.invalidate_over(SECOND * 10);
    let mut alive = Vec::new();
    for _ in 0..5 {
        settle().await;
        alive.push(rig.backend.alive());
        advance(SECOND * 2).await;
    }

    assert_eq!(alive, [4, 3, 2, 1, 0]);
    assert_eq!(rig.pool.status().closes.by(CloseReason::Invalidated), 5);
}

#[tokio::test(start_paused = true)]
async fn resources_of_a_spread_invalidation_are_lent_until_their_time_comes() {
    let rig = idling(2).await;

    rig.pool.invalidate_over(SECOND * 10);
    settle().await;
    let lease = rig.acquire().await;
    let id = Lease::id(&lease);
    advance(SECOND * 4).await;
    drop(lease);
    let idle = rig.pool.status().idle;
    advance(SECOND).await;

    assert!(id <= 2);
    assert_eq!(idle, 1);
    assert_eq!(rig.pool.status().closes.by(CloseReason::Invalidated), 2);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_out_when_its_time_comes_is_closed_on_return() {
    let rig = idling(2).await;
    let held = (rig.acquire().await, rig.acquire().await);

    rig.pool.invalidate_over(SECOND * 10);
    advance(SECOND * 10).await;
    let out = rig.pool.status().in_use;
    drop(held);
    settle().await;

    assert_eq!(out, 2);
    assert_eq!(rig.pool.status().closes.by(CloseReason::Invalidated), 2);
}

#[tokio::test(start_paused = true)]
async fn a_second_invalidation_does_not_put_off_the_first() {
    let rig = idling(2).await;
    rig.pool.invalidate_over(SECOND * 10);
    settle().await;

    rig.pool.invalidate_over(HOUR);
    advance(SECOND * 5).await;

    assert_eq!(rig.backend.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_invalidation_at_once_hastens_one_that_was_spread() {
    let rig = idling(4).await;
    rig.pool.invalidate_over(HOUR);
    settle().await;
    let before = rig.backend.alive();

    rig.pool.invalidate();
    settle().await;

    assert_eq!((before, rig.backend.alive()), (3, 0));
    advance(MS).await;
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_failover_under_load_loses_nothing() {
    let rig = Rig::with_max_size(4);
    let users: Vec<_> = (0..8)
        .map(|_| {
            let pool = rig.pool.clone();
            tokio::spawn(async move {
                for _ in 0..50 {
                    let lease = pool.acquire().await.unwrap();
                    tokio::time::sleep(MS * 3).await;
                    drop(lease);
                }
            })
        })
        .collect();

    for _ in 0..20 {
        tokio::time::sleep(MS * 10).await;
        rig.pool.invalidate();
    }
    for user in users {
        user.await.unwrap();
    }

    let status = rig.pool.status();
    assert!(status.closes.by(CloseReason::Invalidated) > 20);
    assert_eq!(status.released, 400);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn invalidating_over_longer_than_there_is_time_does_not_panic() {
    let rig = Rig::with_max_size(2);
    drop([rig.acquire().await, rig.acquire().await]);

    rig.pool.invalidate_over(Duration::MAX);

    rig.assert_full_service().await;
}
