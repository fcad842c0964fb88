//! The circuit breaker: who is told, who may probe, and that nothing is lost by its changes.

use std::error::Error;
use std::time::Duration;

use cenote::{AcquireError, BreakerState, Health, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Fault, Gate, Rig};

const SECOND: Duration = Duration::from_secs(1);

type Refused = AcquireError<Fault>;

#[tokio::test(start_paused = true)]
async fn it_is_off_by_default_however_often_opening_fails() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Fail);

    for _ in 0..100 {
        assert!(matches!(
            rig.pool.acquire().await,
            Err(AcquireError::Open { .. })
        ));
    }

    assert_eq!(rig.pool.breaker_state(), BreakerState::Active);
    assert!(rig.recorder.of("breaker_changed").is_empty());
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn inactive_fails_every_kind_of_acquire_at_once() {
    let rig = Rig::with_max_size(2);
    drop(rig.acquire().await);

    rig.pool.deactivate();

    let before = rig.pool.status();
    assert!(matches!(
        rig.pool.acquire().await,
        Err(AcquireError::Unavailable { .. })
    ));
    assert!(matches!(
        rig.pool.acquire_timeout(None).await,
        Err(AcquireError::Unavailable { .. })
    ));
    assert!(matches!(
        rig.pool.try_acquire(),
        Err(AcquireError::Unavailable { .. })
    ));
    assert!(matches!(
        rig.pool.acquire_blocking(),
        Err(AcquireError::Unavailable { .. })
    ));
    let served = rig.pool.with(async |_| ()).await;
    assert!(matches!(served, Err(AcquireError::Unavailable { .. })));
    assert_eq!(rig.pool.status(), before, "a refusal leaves no trace");
    rig.pool.activate();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn unavailable_says_since_when_and_by_hand_not_when_to_come_back() {
    let rig = Rig::new(|pool| pool.name("orders"));
    drop(rig.acquire().await);
    rig.pool.deactivate();
    advance(3 * SECOND).await;

    let refused = rig.pool.acquire().await.unwrap_err();

    let text = refused.to_string();
    let AcquireError::Unavailable {
        pool,
        since,
        retry_after,
        cause,
    } = refused
    else {
        panic!("{text}");
    };
    assert_eq!(&*pool, "orders");
    assert_eq!((since, retry_after), (3 * SECOND, None));
    assert!(cause.is_none());
    assert_eq!(
        text,
        "pool `orders` is unavailable: its breaker tripped 3.0s ago"
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_strategy_nobody_says_when_to_come_back_not_even_at_once() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = rig.wait();

    rig.pool.deactivate();

    for refused in [rig.pool.acquire().await, waiting.await] {
        match refused {
            Err(AcquireError::Unavailable { retry_after, .. }) => assert_eq!(retry_after, None),
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
    rig.pool.deactivate();

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
async fn everybody_who_waits_is_told_when_it_becomes_inactive() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut waiting: Vec<_> = (0..5).map(|_| rig.wait()).collect();

    rig.pool.deactivate();

    assert!(waiting.iter_mut().all(|waiting| waiting.is_served()));
    for waiting in waiting {
        assert!(matches!(
            waiting.await,
            Err(AcquireError::Unavailable { .. })
        ));
    }
    assert_eq!(rig.pool.status().waiting, 0);
    drop(held);
    rig.pool.activate();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_parked_task_and_a_parked_thread_are_woken_when_it_becomes_inactive() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let (pool, other) = (rig.pool.clone(), rig.pool.clone());
    let task = tokio::spawn(async move { pool.acquire_timeout(None).await.err() });
    let thread = tokio::task::spawn_blocking(move || other.acquire_blocking_timeout(None).err());
    while rig.pool.status().waiting < 2 {
        tokio::task::yield_now().await;
    }

    rig.pool.deactivate();

    let told = [task.await.unwrap(), thread.await.unwrap()];
    for told in told {
        assert!(matches!(told, Some(Refused::Unavailable { .. })));
    }
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn one_who_was_granted_but_not_yet_polled_is_told_and_its_resource_is_idle_again() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = rig.wait();
    drop(held);
    assert_eq!(rig.pool.status().in_use, 1, "it is granted");

    rig.pool.deactivate();

    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use, status.total), (1, 0, 1));
    assert!(matches!(
        waiting.await,
        Err(AcquireError::Unavailable { .. })
    ));
    rig.pool.activate();
    assert_eq!(Lease::uses(&rig.acquire().await), 2, "not used meanwhile");
    assert_eq!(rig.pool.status().opened, 1, "nothing healthy was destroyed");
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn one_who_was_granted_and_is_dropped_untold_loses_nothing() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = rig.wait();
    drop(held);
    rig.pool.deactivate();

    drop(waiting);

    assert_eq!(rig.pool.status().idle, 1);
    rig.pool.activate();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn an_open_under_way_survives_and_serves_nobody_while_inactive() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Slow(SECOND));
    let waiting = rig.wait();
    settle().await;

    rig.pool.deactivate();
    advance(SECOND).await;

    assert!(matches!(
        waiting.await,
        Err(AcquireError::Unavailable { .. })
    ));
    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use, status.opening), (1, 0, 0));
    rig.pool.activate();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn leases_come_home_in_every_state() {
    let rig = Rig::with_max_size(6);
    let mut leases = Vec::new();
    for _ in 0..6 {
        leases.push(rig.acquire().await);
    }

    rig.pool.deactivate();
    drop(leases.pop());
    Lease::discard(leases.pop().unwrap());
    rig.pool.recover();
    drop(leases.pop());
    Lease::release(leases.pop().unwrap()).await;
    rig.pool.deactivate();
    leases[0].dirty = true;
    drop(leases);
    settle().await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use, status.total), (5, 0, 5));
    assert_eq!((status.released, status.discarded), (6, 1));
    rig.pool.activate();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn inactive_upkeep_opens_nothing() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(2).min_idle(1));
    rig.pool.warm().await.unwrap();
    rig.pool.deactivate();
    rig.pool.invalidate();
    let opened = rig.backend.calls(Call::Open);

    advance(60 * SECOND).await;

    assert_eq!(rig.backend.calls(Call::Open), opened);
    assert_eq!(rig.pool.status().total, 0);
    rig.pool.activate();
    settle().await;
    assert_eq!(rig.pool.status().total, 2, "refilled once it is active");
}

#[tokio::test(start_paused = true)]
async fn without_a_strategy_it_stays_as_it_was_set_by_hand() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);

    for (set, state) in [
        (cenote::Pool::deactivate as fn(&_), BreakerState::Inactive),
        (cenote::Pool::recover, BreakerState::Recovering),
        (cenote::Pool::activate, BreakerState::Active),
        (cenote::Pool::recover, BreakerState::Recovering),
        (cenote::Pool::deactivate, BreakerState::Inactive),
        (cenote::Pool::activate, BreakerState::Active),
    ] {
        set(&rig.pool);
        advance(3600 * SECOND).await;
        assert_eq!(rig.pool.breaker_state(), state);
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
async fn setting_the_state_it_has_is_no_change() {
    let rig = Rig::with_max_size(1);
    rig.pool.activate();
    rig.pool.deactivate();
    advance(SECOND).await;

    rig.pool.deactivate();

    assert_eq!(rig.recorder.of("breaker_changed").len(), 1);
    assert!(
        matches!(rig.pool.health(), Health::Down { down_for } if down_for == SECOND),
        "inactive since the first time"
    );
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_is_closed_whatever_its_breaker_says() {
    let rig = Rig::with_max_size(1);
    rig.pool.deactivate();
    rig.pool.close();

    let refused = rig.pool.acquire().await;

    assert!(matches!(refused, Err(AcquireError::Closed { .. })));
    rig.pool.activate();
    assert!(matches!(
        rig.pool.acquire().await,
        Err(AcquireError::Closed { .. })
    ));
}
