//! Idle eviction: a resource that is unused for `idle_timeout` is closed at that moment, and never
//! below `min_size` and `min_idle`.

use std::time::Duration;

use cenote::config::IdleOrder;
use cenote::{CloseReason, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// No multiple of any other time in these tests, so that no test passes by accident.
const IDLE: Duration = Duration::from_secs(47);

#[tokio::test(start_paused = true)]
async fn an_idle_resource_is_closed_when_its_time_is_over_and_not_before() {
    let rig = Rig::new(|pool| pool.idle_timeout(IDLE).upkeep_interval(HOUR));
    rig.leave_idle(1).await;

    advance(IDLE - MS).await;
    let before = rig.pool.status();
    advance(MS).await;
    let after = rig.pool.status();

    assert_eq!((before.idle, before.closes.total()), (1, 0));
    assert_eq!((after.idle, after.closes.by(CloseReason::Idle)), (0, 1));
    assert_eq!(rig.recorder.of("closed"), ["closed 1 idle"]);
    assert_eq!(rig.backend.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_use_starts_the_idle_time_again() {
    let rig = Rig::new(|pool| pool.idle_timeout(IDLE).check_after_idle(None));
    rig.leave_idle(1).await;
    advance(IDLE - SECOND).await;

    drop(rig.acquire().await);
    advance(IDLE - MS).await;
    let before = rig.pool.status().idle;
    advance(MS).await;

    assert_eq!((before, rig.pool.status().idle), (1, 0));
    assert_eq!(rig.pool.status().opened, 1);
}

#[tokio::test(start_paused = true)]
async fn each_resource_has_its_own_idle_time() {
    let rig = Rig::new(|pool| pool.idle_timeout(IDLE).upkeep_interval(HOUR));
    let (first, second) = (rig.acquire().await, rig.acquire().await);
    drop(second);
    advance(SECOND).await;
    drop(first);

    advance(IDLE - SECOND).await;
    let after_one = rig.recorder.of("closed");
    advance(SECOND).await;

    assert_eq!(after_one, ["closed 2 idle"]);
    assert_eq!(
        rig.recorder.of("closed"),
        ["closed 2 idle", "closed 1 idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn eviction_stops_at_min_size_without_closing_and_opening_again() {
    let rig = Rig::new(|pool| {
        pool.max_size(5)
            .min_size(2)
            .idle_timeout(IDLE)
            .max_lifetime(None)
    });
    rig.leave_idle(5).await;

    advance(IDLE).await;
    let after_spike = rig.pool.status();
    tokio::time::sleep(HOUR).await;
    let an_hour_later = rig.pool.status();

    assert_eq!((after_spike.total, after_spike.closes.total()), (2, 3));
    assert_eq!((an_hour_later.total, an_hour_later.closes.total()), (2, 3));
    assert_eq!(an_hour_later.opened, 5);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn eviction_stops_at_min_idle_without_closing_and_opening_again() {
    let rig = Rig::new(|pool| {
        pool.max_size(5)
            .min_idle(2)
            .idle_timeout(IDLE)
            .max_lifetime(None)
    });
    rig.leave_idle(5).await;

    advance(IDLE).await;
    tokio::time::sleep(HOUR).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.closes.by(CloseReason::Idle)), (2, 3));
    assert_eq!(status.opened, 5);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_in_use_counts_for_min_size() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(2).idle_timeout(IDLE));
    let held = (rig.acquire().await, rig.acquire().await);
    drop(rig.acquire().await);

    advance(IDLE).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use), (0, 2));
    drop(held);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_longest_unused_go_first() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(1).idle_timeout(IDLE));
    let (first, second, third) = (
        rig.acquire().await,
        rig.acquire().await,
        rig.acquire().await,
    );
    for lease in [second, third, first] {
        drop(lease);
        advance(SECOND).await;
    }

    advance(IDLE).await;

    assert_eq!(
        rig.recorder.of("closed"),
        ["closed 2 idle", "closed 3 idle"]
    );
    assert_eq!(Lease::id(&rig.acquire().await), 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_spike_the_hot_one_stays_and_the_rest_is_evicted() {
    let rig = Rig::new(|pool| pool.max_size(5).idle_timeout(IDLE));
    rig.leave_idle(5).await;

    for _ in 0..=IDLE.as_secs() {
        drop(rig.acquire().await);
        advance(SECOND).await;
    }

    let status = rig.pool.status();
    assert_eq!((status.idle, status.closes.by(CloseReason::Idle)), (1, 4));
    assert_eq!(status.opened, 5);
}

#[tokio::test(start_paused = true)]
async fn oldest_first_keeps_all_of_them_in_use() {
    let rig = Rig::new(|pool| {
        pool.max_size(5)
            .idle_timeout(IDLE)
            .idle_order(IdleOrder::Oldest)
    });
    rig.leave_idle(5).await;

    for _ in 0..=IDLE.as_secs() {
        drop(rig.acquire().await);
        advance(SECOND).await;
    }

    assert_eq!(rig.pool.status().idle, 5);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_does_not_make_a_resource_look_used() {
    let rig = Rig::new(|pool| {
        pool.idle_timeout(IDLE)
            .heartbeat_interval(Duration::from_secs(10))
    });
    rig.leave_idle(1).await;

    for _ in 0..IDLE.as_secs() {
        advance(SECOND).await;
    }

    assert_eq!(rig.backend.calls(Call::Check), 4);
    assert_eq!(rig.recorder.of("closed"), ["closed 1 idle"]);
}

#[tokio::test(start_paused = true)]
async fn a_check_that_lends_nothing_does_not_make_a_resource_look_used() {
    let rig = Rig::new(|pool| {
        pool.idle_timeout(IDLE)
            .check_after_idle(Duration::from_secs(5))
    });
    rig.leave_idle(1).await;
    advance(Duration::from_secs(20)).await;

    let tried = rig.pool.try_acquire().unwrap();
    settle().await;
    let checked = (rig.backend.calls(Call::Check), rig.pool.status().idle);
    advance(IDLE - Duration::from_secs(20)).await;

    assert!(tried.is_none());
    assert_eq!(checked, (1, 1));
    assert_eq!(rig.recorder.of("closed"), ["closed 1 idle"]);
}

#[tokio::test(start_paused = true)]
async fn a_look_by_retain_does_not_make_a_resource_look_used() {
    let rig = Rig::new(|pool| pool.idle_timeout(IDLE));
    rig.leave_idle(1).await;
    advance(Duration::from_secs(20)).await;

    rig.pool.retain(|_| true);
    advance(IDLE - Duration::from_secs(20)).await;

    assert_eq!(rig.recorder.of("closed"), ["closed 1 idle"]);
}

#[tokio::test(start_paused = true)]
async fn a_resource_in_use_is_never_evicted() {
    let rig = Rig::new(|pool| pool.idle_timeout(IDLE).max_lifetime(None));
    let held = rig.acquire().await;

    tokio::time::sleep(HOUR).await;

    let status = rig.pool.status();
    assert_eq!((status.in_use, status.closes.total()), (1, 0));
    assert_eq!(held.serial, 1);
}

#[tokio::test(start_paused = true)]
async fn without_an_idle_timeout_nothing_is_evicted() {
    let rig = Rig::new(|pool| pool.idle_timeout(None).max_lifetime(None));
    rig.leave_idle(3).await;

    tokio::time::sleep(HOUR).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.closes.total()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_hung_close_holds_up_neither_the_others_nor_its_slot_for_long() {
    let close_timeout = Duration::from_secs(3);
    let rig = Rig::new(|pool| {
        pool.max_size(3)
            .idle_timeout(IDLE)
            .close_timeout(close_timeout)
    });
    rig.backend.once(Call::Close, Gate::Hang);
    rig.leave_idle(3).await;

    advance(IDLE).await;
    let hung = rig.pool.status();
    advance(close_timeout).await;
    let ended = rig.pool.status();

    assert_eq!((hung.closing, hung.total), (1, 0));
    assert_eq!((ended.closing, ended.closes.by(CloseReason::Idle)), (0, 3));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_close_ends_neither_the_upkeep_nor_the_slot() {
    let rig = Rig::new(|pool| pool.max_size(2).idle_timeout(IDLE));
    rig.backend.always(Call::Close, Gate::Panic);
    rig.leave_idle(2).await;

    advance(IDLE).await;
    let after_first = rig.pool.status();
    rig.leave_idle(2).await;
    advance(IDLE).await;

    assert_eq!((after_first.closing, after_first.total), (0, 0));
    assert_eq!(rig.pool.status().closes.by(CloseReason::Idle), 4);
    assert_eq!(rig.recorder.of("callback_failed").len(), 4);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_kept_for_min_size_is_evicted_as_soon_as_it_is_not_needed() {
    let rig = Rig::new(|pool| {
        let pool = pool.max_size(2).min_idle(1).idle_timeout(10 * SECOND);
        pool.upkeep_interval(HOUR).check_after_idle(None)
    });
    rig.leave_idle(2).await;
    let held = rig.acquire().await;
    advance(12 * SECOND).await;
    assert_eq!(
        rig.backend.alive(),
        2,
        "the idle one is the least that must be"
    );

    drop(held);
    settle().await;

    assert_eq!(rig.pool.status().closes.by(CloseReason::Idle), 1);
    assert_eq!(rig.backend.alive(), 1);
}
