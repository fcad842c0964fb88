//! The circuit breaker: which waiters are told, which may probe, and that its changes lose nothing.

use std::error::Error;
use std::time::Duration;

use cenote::breaker::{Breaker, BreakerState};
use cenote::{AcquireError, Health, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Fault, Gate, Rig};

use crate::support::rigs::hold;

const SECOND: Duration = Duration::from_secs(1);

type Refused = AcquireError<Fault>;

#[tokio::test(start_paused = true)]
async fn the_breaker_is_off_by_default_however_often_opening_fails() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Fail);

    for _ in 0..100 {
        assert!(matches!(
            rig.pool.acquire().await,
            Err(AcquireError::Open { .. })
        ));
    }

    assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
    assert!(rig.recorder.of("breaker_changed").is_empty());
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn an_inactive_breaker_fails_every_kind_of_acquire_at_once() {
    let rig = Rig::with_max_size(2);
    drop(rig.acquire().await);

    rig.pool.breaker().trip();

    let before = rig.pool.status();
    assert!(matches!(
        rig.pool.acquire().await,
        Err(AcquireError::Unavailable(_))
    ));
    assert!(matches!(
        rig.pool.acquire_within(None).await,
        Err(AcquireError::Unavailable(_))
    ));
    assert!(matches!(
        rig.pool.try_acquire(),
        Err(AcquireError::Unavailable(_))
    ));
    assert!(matches!(
        rig.pool.acquire_blocking(),
        Err(AcquireError::Unavailable(_))
    ));
    let served = rig.pool.with(async |_| ()).await;
    assert!(matches!(served, Err(AcquireError::Unavailable(_))));
    let mut after = rig.pool.status();
    assert_eq!(after.refusals.total(), 5);
    after.refusals = before.refusals.clone();
    assert_eq!(after, before, "a refusal leaves no other trace");
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn unavailable_says_since_when_and_by_hand_not_when_to_come_back() {
    let rig = Rig::new(|pool| pool.name("orders"));
    drop(rig.acquire().await);
    rig.pool.breaker().trip();
    advance(3 * SECOND).await;

    let refused = rig.pool.acquire().await.unwrap_err();

    let text = refused.to_string();
    let AcquireError::Unavailable(told) = refused else {
        panic!("{text}");
    };
    assert_eq!(&*told.pool, "orders");
    assert_eq!((told.since, told.retry_after), (3 * SECOND, None));
    assert!(told.cause.is_none());
    assert_eq!(
        text,
        "pool `orders` is unavailable: its breaker tripped 3.0s ago"
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_strategy_no_error_says_when_to_come_back() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = rig.wait();

    rig.pool.breaker().trip();

    for refused in [rig.pool.acquire().await, waiting.await] {
        match refused {
            Err(AcquireError::Unavailable(told)) => assert_eq!(told.retry_after, None),
            other => panic!("{other:?}"),
        }
    }
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn unavailable_tells_the_open_error_that_led_to_it() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());
    rig.pool.breaker().trip();

    let refused = rig.pool.acquire().await.unwrap_err();

    let text = refused.to_string();
    assert!(
        text.ends_with("; opening failed: the backend refused Open"),
        "{text}"
    );
    let source = refused.source().and_then(<dyn Error>::downcast_ref);
    assert_eq!(source, Some(&Fault(Call::Open)));
    assert!(refused.is_retryable());
}

#[tokio::test(start_paused = true)]
async fn every_waiter_is_told_when_the_breaker_becomes_inactive() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut waiting: Vec<_> = (0..5).map(|_| rig.wait()).collect();

    rig.pool.breaker().trip();

    assert!(waiting.iter_mut().all(|waiting| waiting.is_served()));
    for waiting in waiting {
        assert!(matches!(waiting.await, Err(AcquireError::Unavailable(_))));
    }
    assert_eq!(rig.pool.status().waiting, 0);
    drop(held);
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_parked_task_and_a_parked_thread_are_woken_when_the_breaker_becomes_inactive() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let (pool, other) = (rig.pool.clone(), rig.pool.clone());
    let task = tokio::spawn(async move { pool.acquire_within(None).await.err() });
    let thread = tokio::task::spawn_blocking(move || other.acquire_blocking_within(None).err());
    while rig.pool.status().waiting < 2 {
        tokio::task::yield_now().await;
    }

    rig.pool.breaker().trip();

    let told = [task.await.unwrap(), thread.await.unwrap()];
    for told in told {
        assert!(matches!(told, Some(Refused::Unavailable(_))));
    }
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_with_an_untaken_grant_is_told_and_its_resource_is_idle_again() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = rig.wait();
    drop(held);
    assert_eq!(rig.pool.status().in_use, 1, "it is granted");

    rig.pool.breaker().trip();

    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use, status.total), (1, 0, 1));
    assert!(matches!(waiting.await, Err(AcquireError::Unavailable(_))));
    rig.pool.breaker().reset();
    assert_eq!(Lease::uses(&rig.acquire().await), 2, "not used meanwhile");
    assert_eq!(rig.pool.status().opened, 1, "nothing healthy was destroyed");
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiter_with_an_untaken_grant_that_is_dropped_untold_loses_nothing() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = rig.wait();
    drop(held);
    rig.pool.breaker().trip();

    drop(waiting);

    assert_eq!(rig.pool.status().idle, 1);
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn an_open_under_way_survives_and_serves_no_waiter_while_inactive() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Slow(SECOND));
    let waiting = rig.wait();
    settle().await;

    rig.pool.breaker().trip();
    advance(SECOND).await;

    assert!(matches!(waiting.await, Err(AcquireError::Unavailable(_))));
    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use, status.opening), (1, 0, 0));
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn leases_are_returned_in_every_state() {
    let rig = Rig::with_max_size(6);
    let mut leases = hold(&rig, 6).await;

    rig.pool.breaker().trip();
    drop(leases.pop());
    Lease::discard(leases.pop().unwrap());
    rig.pool.breaker().probe();
    drop(leases.pop());
    Lease::release(leases.pop().unwrap()).await;
    rig.pool.breaker().trip();
    leases[0].dirty = true;
    drop(leases);
    settle().await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use, status.total), (5, 0, 5));
    assert_eq!((status.released, status.discarded), (6, 1));
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn inactive_upkeep_opens_nothing() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(2).min_idle(1));
    rig.pool.warm().await.unwrap();
    rig.pool.breaker().trip();
    rig.pool.invalidate();
    let opened = rig.backend.calls(Call::Open);

    advance(60 * SECOND).await;

    assert_eq!(rig.backend.calls(Call::Open), opened);
    assert_eq!(rig.pool.status().total, 0);
    rig.pool.breaker().reset();
    settle().await;
    assert_eq!(rig.pool.status().total, 2, "refilled once it is active");
}

#[tokio::test(start_paused = true)]
async fn without_a_strategy_it_stays_as_it_was_set_by_hand() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);

    for (set, state) in [
        (Breaker::trip as fn(&_), BreakerState::Inactive),
        (Breaker::probe, BreakerState::Recovering),
        (Breaker::reset, BreakerState::Active),
        (Breaker::probe, BreakerState::Recovering),
        (Breaker::trip, BreakerState::Inactive),
        (Breaker::reset, BreakerState::Active),
    ] {
        set(&rig.pool.breaker());
        advance(3600 * SECOND).await;
        assert_eq!(rig.pool.breaker().state(), state);
    }

    assert_eq!(
        rig.recorder.of("breaker_changed"),
        [
            "breaker_changed active inactive",
            "breaker_changed inactive recovering",
            "breaker_changed recovering active",
            "breaker_changed active recovering",
            "breaker_changed recovering inactive",
            "breaker_changed inactive active",
        ]
    );
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_handle_of_the_breaker_shows_and_sets_its_state() {
    let rig = Rig::new(|pool| pool.max_size(2).probes(1));
    let breaker = rig.pool.breaker();
    assert_eq!(breaker.state(), BreakerState::Active);

    breaker.trip();
    assert_eq!(breaker.state(), BreakerState::Inactive);
    assert_eq!(format!("{breaker:?}"), "Breaker { state: Inactive, .. }");
    breaker.probe();
    assert_eq!(breaker.state(), BreakerState::Recovering);
    let probe = rig.acquire().await;
    assert!(
        rig.pool.try_acquire().unwrap().is_none(),
        "one probe is out"
    );
    breaker.reset();

    assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
    let second = rig.acquire().await;
    drop((probe, second));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn setting_the_state_it_has_is_no_change() {
    let rig = Rig::with_max_size(1);
    rig.pool.breaker().reset();
    rig.pool.breaker().trip();
    advance(SECOND).await;

    rig.pool.breaker().trip();

    assert_eq!(rig.recorder.of("breaker_changed").len(), 1);
    assert!(
        matches!(rig.pool.health(), Health::Down { down_for } if down_for == SECOND),
        "inactive since the first time"
    );
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_is_closed_whatever_its_breaker_says() {
    let rig = Rig::with_max_size(1);
    rig.pool.breaker().trip();
    rig.pool.close();

    let refused = rig.pool.acquire().await;

    assert!(matches!(refused, Err(AcquireError::Closed { .. })));
    rig.pool.breaker().reset();
    assert!(matches!(
        rig.pool.acquire().await,
        Err(AcquireError::Closed { .. })
    ));
}
