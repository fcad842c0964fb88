//! Acquire of an idle resource: in which order they are lent, which are checked first, and which
//! are closed on the way.

use std::time::Duration;

use cenote::config::IdleOrder;
use cenote::{AcquireError, Builder, CloseReason, Lease};
use cenote_testkit::clock::{advance, settle, timed};
use cenote_testkit::{Call, Gate, GatedManager, Rig, Thing};

use crate::support::rigs::hold;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(60 * 60);

fn closed(rig: &Rig, reason: CloseReason) -> u64 {
    rig.pool.status().closes.by(reason)
}

/// Acquires four resources, returns them in the order 2, 4, 1, 3, and returns the order in which
/// they are lent again.
async fn order_of_reuse(rig: &Rig, pause: Duration) -> Vec<u64> {
    let mut leases: Vec<_> = Vec::new();
    for _ in 0..4 {
        leases.push(Some(rig.acquire().await));
    }
    for nth in [1, 3, 0, 2] {
        leases[nth] = None;
        advance(pause).await;
    }
    let again = hold(rig, 4).await;
    again.iter().map(Lease::id).collect()
}

#[tokio::test(start_paused = true)]
async fn hot_lends_the_most_recently_used_resource() {
    for pause in [Duration::ZERO, 10 * MS] {
        let rig = Rig::new(|pool| pool.max_size(4).idle_order(IdleOrder::Hot));

        let order = order_of_reuse(&rig, pause).await;

        assert_eq!(order, [3, 1, 4, 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn oldest_lends_the_least_recently_used_resource() {
    for pause in [Duration::ZERO, 10 * MS] {
        let rig = Rig::new(|pool| pool.max_size(4).idle_order(IdleOrder::Oldest));

        let order = order_of_reuse(&rig, pause).await;

        assert_eq!(order, [2, 4, 1, 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn hot_keeps_few_in_use_so_that_the_rest_can_be_evicted() {
    let rig = Rig::new(|pool| pool.max_size(4).idle_timeout(60 * SECOND));
    rig.leave_idle(4).await;

    for _ in 0..70 {
        advance(SECOND).await;
        drop(rig.acquire().await);
    }

    assert_eq!(
        (rig.pool.status().idle, closed(&rig, CloseReason::Idle)),
        (1, 3)
    );
}

#[tokio::test(start_paused = true)]
async fn a_check_is_made_only_after_check_after_idle() {
    let rig = Rig::new(|pool| pool.max_size(1).check_after_idle(5 * SECOND));
    drop(rig.acquire().await);

    advance(5 * SECOND - MS).await;
    drop(rig.acquire().await);
    assert_eq!(rig.backend.calls(Call::Check), 0);
    advance(5 * SECOND).await;
    drop(rig.acquire().await);

    assert_eq!(rig.backend.calls(Call::Check), 1);
    assert_eq!(rig.pool.status().opened, 1);
}

#[tokio::test(start_paused = true)]
async fn check_after_idle_zero_checks_on_every_acquire_but_the_first() {
    let rig = Rig::new(|pool| pool.max_size(1).check_after_idle(Duration::ZERO));

    for _ in 0..4 {
        drop(rig.acquire().await);
    }

    assert_eq!(rig.backend.calls(Call::Check), 3);
}

#[tokio::test(start_paused = true)]
async fn check_after_idle_none_never_checks() {
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .check_after_idle(None)
            .idle_timeout(None)
            .max_lifetime(None)
    });
    drop(rig.acquire().await);

    advance(24 * HOUR).await;
    drop(rig.acquire().await);

    assert_eq!(rig.backend.calls(Call::Check), 0);
    assert_eq!(rig.pool.status().opened, 1);
}

#[tokio::test(start_paused = true)]
async fn a_dead_resource_is_closed_and_the_next_one_tried() {
    for gate in [Gate::Fail, Gate::Panic, Gate::Hang] {
        let rig = Rig::with_max_size(3);
        rig.leave_idle(3).await;
        advance(10 * SECOND).await;
        rig.backend.once(Call::Check, gate);

        let lease = rig.acquire().await;
        advance(2 * SECOND).await;

        assert_eq!(Lease::uses(&lease), 2, "{gate:?}: an idle one is left");
        assert_eq!(closed(&rig, CloseReason::FailedCheck), 1, "{gate:?}");
        assert_eq!(rig.pool.status().opened, 3, "{gate:?}");
        drop(lease);
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn when_all_resources_are_dead_a_fresh_one_is_opened() {
    let rig = Rig::with_max_size(3);
    rig.leave_idle(3).await;
    advance(10 * SECOND).await;
    rig.backend.always(Call::Check, Gate::Fail);

    let lease = rig.acquire().await;

    assert_eq!((Lease::id(&lease), Lease::uses(&lease)), (4, 1));
    assert_eq!(closed(&rig, CloseReason::FailedCheck), 3);
}

#[tokio::test(start_paused = true)]
async fn one_dead_resource_makes_equally_stale_ones_suspect_so_that_the_next_callers_do_not_pay() {
    let rig = Rig::new(|pool| pool.max_size(8).check_timeout(500 * MS));
    rig.leave_idle(6).await;
    advance(10 * SECOND).await;
    rig.backend.always(Call::Check, Gate::Hang);

    let (first, paid) = timed(rig.acquire()).await;
    assert!(paid <= 1002 * MS, "the first paid {paid:?}");
    assert_eq!(rig.backend.calls(Call::Check), 6);

    let mut others = Vec::new();
    for _ in 0..6 {
        let (lease, paid) = timed(rig.acquire()).await;
        assert_eq!(paid, Duration::ZERO);
        others.push(lease);
    }
    assert_eq!(closed(&rig, CloseReason::FailedCheck), 6);
    drop((first, others));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_suspect_that_is_alive_is_kept() {
    let rig = Rig::with_max_size(4);
    rig.leave_idle(4).await;
    advance(10 * SECOND).await;
    rig.backend.once(Call::Check, Gate::Fail);

    drop(rig.acquire().await);
    settle().await;

    assert_eq!(rig.backend.calls(Call::Check), 4);
    assert_eq!(closed(&rig, CloseReason::FailedCheck), 1);
    assert_eq!(rig.pool.status().idle, 3);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_was_proven_before_another_was_found_dead_is_checked_again() {
    let rig = Rig::new(|pool| pool.max_size(3).idle_order(IdleOrder::Oldest));
    let (one, two, three) = (
        rig.acquire().await,
        rig.acquire().await,
        rig.acquire().await,
    );
    drop(one);
    advance(3 * SECOND).await;
    drop((two, three));
    advance(3 * SECOND).await;
    rig.backend.once(Call::Check, Gate::Fail);

    let lease = rig.acquire().await;
    settle().await;

    assert_eq!(Lease::id(&lease), 2);
    assert_eq!(
        rig.backend.calls(Call::Check),
        2,
        "the dead one, and the one that was lent"
    );
}

#[tokio::test(start_paused = true)]
async fn a_proven_resource_is_lent_at_once_though_a_hotter_one_must_be_checked() {
    let rig = Rig::new(|pool| {
        pool.max_size(2)
            .check_after_idle(5 * SECOND)
            .heartbeat_interval(6 * SECOND)
    });
    let (cold, hot) = (rig.acquire().await, rig.acquire().await);
    drop(cold);
    advance(500 * MS).await;
    drop(hot);
    // The heartbeat has proven the cold resource, and not yet the hot one.
    advance(5700 * MS).await;
    assert_eq!(rig.backend.calls(Call::Check), 1);
    rig.backend.always(Call::Check, Gate::Slow(SECOND));

    let (lease, paid) = timed(rig.acquire()).await;

    assert_eq!((Lease::id(&lease), paid), (1, Duration::ZERO));
}

fn asking(pool: Builder<GatedManager>) -> Builder<GatedManager> {
    pool.before_acquire(async |thing: &mut Thing| thing.pass(Call::BeforeAcquire).await)
}

#[tokio::test(start_paused = true)]
async fn before_acquire_is_asked_for_an_idle_resource_and_not_for_a_fresh_one() {
    let rig = Rig::new(|pool| asking(pool.max_size(2)));

    let fresh = rig.acquire().await;
    assert_eq!(rig.backend.calls(Call::BeforeAcquire), 0);
    drop(fresh);
    let idle = rig.acquire().await;
    assert_eq!(rig.backend.calls(Call::BeforeAcquire), 1);
    let other = rig.acquire().await;

    assert_eq!(rig.backend.calls(Call::BeforeAcquire), 1);
    assert_eq!((Lease::id(&idle), Lease::id(&other)), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn before_acquire_is_not_asked_for_a_resource_that_is_broken() {
    let rig = Rig::new(|pool| asking(pool.max_size(2)));
    rig.leave_idle(1).await;
    rig.pool.retain(|thing| {
        thing.broken = true;
        true
    });

    let lease = rig.acquire().await;

    assert_eq!(Lease::id(&lease), 2);
    assert_eq!(rig.backend.calls(Call::BeforeAcquire), 0);
    assert_eq!(closed(&rig, CloseReason::Broken), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_before_acquire_refuses_is_closed_and_the_next_one_tried() {
    for gate in [Gate::Fail, Gate::Panic, Gate::Hang] {
        let rig = Rig::new(|pool| asking(pool.max_size(2)));
        rig.leave_idle(2).await;
        rig.backend.once(Call::BeforeAcquire, gate);

        let (lease, paid) = timed(rig.acquire()).await;
        advance(2 * SECOND).await;

        assert!(paid <= 2002 * MS, "{gate:?} took {paid:?}");
        assert_eq!(Lease::uses(&lease), 2, "{gate:?}: an idle one is left");
        assert_eq!(closed(&rig, CloseReason::Refused), 1, "{gate:?}");
        drop(lease);
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn before_acquire_is_asked_also_for_a_resource_that_was_checked_as_a_suspect() {
    let rig = Rig::new(|pool| asking(pool.max_size(2)));
    rig.leave_idle(2).await;
    advance(10 * SECOND).await;
    rig.backend.once(Call::Check, Gate::Fail);

    let lease = rig.acquire().await;

    assert_eq!(Lease::uses(&lease), 2);
    assert_eq!(rig.backend.calls(Call::BeforeAcquire), 1);
}

#[tokio::test(start_paused = true)]
async fn before_acquire_is_asked_also_for_a_resource_that_comes_from_its_heartbeat() {
    let rig = Rig::new(|pool| asking(pool.max_size(1).heartbeat_interval(6 * SECOND)));
    drop(rig.acquire().await);
    rig.backend.always(Call::Check, Gate::Slow(100 * MS));
    advance(6010 * MS).await;
    assert_eq!(rig.pool.status().checking, 1);

    let lease = rig.acquire().await;

    assert_eq!((Lease::id(&lease), Lease::uses(&lease)), (1, 2));
    assert_eq!(rig.backend.calls(Call::BeforeAcquire), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_past_its_lifetime_is_never_lent() {
    let rig = Rig::new(|pool| pool.max_size(2).max_lifetime(60 * SECOND));
    rig.leave_idle(2).await;
    rig.pool.pause_upkeep();
    advance(61 * SECOND).await;

    let lease = rig.acquire().await;

    assert_eq!(Lease::id(&lease), 3);
    assert_eq!(closed(&rig, CloseReason::Lifetime), 2);
}

#[tokio::test(start_paused = true)]
async fn try_acquire_takes_an_idle_resource_and_never_waits_for_an_open() {
    let rig = Rig::with_max_size(2);

    assert!(rig.pool.try_acquire().unwrap().is_none());
    drop(rig.acquire().await);
    let lease = rig.pool.try_acquire().unwrap().unwrap();

    assert_eq!(Lease::id(&lease), 1);
    assert!(rig.pool.try_acquire().unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn try_acquire_starts_the_check_of_an_unproven_resource_for_a_later_try() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    advance(10 * SECOND).await;

    assert!(rig.pool.try_acquire().unwrap().is_none());
    settle().await;

    assert_eq!(rig.backend.calls(Call::Check), 1);
    assert!(rig.pool.try_acquire().unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_during_a_check_leaves_the_resource_whole() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    advance(10 * SECOND).await;
    rig.backend.once(Call::Check, Gate::Slow(50 * MS));

    let gave_up = rig.pool.acquire_within(10 * MS).await;
    assert!(matches!(gave_up, Err(AcquireError::TimedOut(_))));
    advance(50 * MS).await;

    assert_eq!(Lease::id(&rig.acquire().await), 1);
    assert_eq!(rig.pool.status().closes.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_retain_looked_at_is_still_checked_before_it_is_lent() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    advance(10 * SECOND).await;
    let mut waiting = None;

    rig.pool.retain(|_| {
        waiting = Some(rig.wait());
        true
    });
    let lease = waiting.unwrap().await.unwrap();

    assert_eq!((Lease::id(&lease), rig.backend.calls(Call::Check)), (1, 1));
}
