//! `try_acquire_or_open`: an idle resource, or the one that there is room for, and never a queue.

use std::time::Duration;

use cenote::{AcquireError, Lease};
use cenote_testkit::clock::{advance, settle, timed};
use cenote_testkit::{Call, Gate, Rig, cut};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn an_idle_resource_is_lent_at_once() {
    let rig = Rig::with_max_size(2);
    drop(rig.acquire().await);

    let (lease, took) = timed(rig.pool.try_acquire_or_open()).await;

    let lease = lease.unwrap().unwrap();
    assert_eq!((Lease::id(&lease), took), (1, Duration::ZERO));
    assert_eq!(rig.backend.calls(Call::Open), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cold_pool_opens_one_and_lends_it() {
    let rig = Rig::with_max_size(2);
    rig.backend.once(Call::Open, Gate::Slow(SECOND));

    let (lease, took) = timed(rig.pool.try_acquire_or_open()).await;

    assert!(lease.unwrap().is_some());
    assert_eq!(took, SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_pool_says_none_at_once() {
    let rig = Rig::with_max_size(1);
    let _held = rig.acquire().await;

    let (none, took) = timed(rig.pool.try_acquire_or_open()).await;

    assert!(none.unwrap().is_none());
    assert_eq!(took, Duration::ZERO);
    let status = rig.pool.status();
    assert_eq!(
        (status.waited, status.refusals.total()),
        (1, 0),
        "only the first waited"
    );
    assert!(rig.recorder.of("refused").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_place_that_a_waiter_is_waiting_for_is_not_taken() {
    let rig = Rig::with_max_size(2);
    let _held = rig.acquire().await;
    rig.backend.once(Call::Open, Gate::Slow(SECOND));
    let waiting = rig.wait();

    assert!(rig.pool.try_acquire_or_open().await.unwrap().is_none());

    assert_eq!(Lease::id(&waiting.await.unwrap()), 2);
}

#[tokio::test(start_paused = true)]
async fn it_takes_a_resource_that_comes_back_before_the_open_is_done() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;
    rig.backend.once(Call::Open, Gate::Slow(SECOND));
    let acquiring = tokio::spawn({
        let pool = rig.pool.clone();
        async move { timed(pool.try_acquire_or_open()).await }
    });
    settle().await;

    drop(held);

    let (lease, took) = acquiring.await.unwrap();
    assert_eq!(
        (Lease::id(&lease.unwrap().unwrap()), took),
        (1, Duration::ZERO)
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_open_is_its_error() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Fail);

    let failed = rig.pool.try_acquire_or_open().await;

    assert!(matches!(failed, Err(AcquireError::Open { .. })));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn an_open_that_hangs_ends_with_a_timeout() {
    let rig = Rig::new(|pool| pool.max_size(1).acquire_timeout(SECOND));
    rig.backend.once(Call::Open, Gate::Hang);

    let (late, took) = timed(rig.pool.try_acquire_or_open()).await;

    assert!(matches!(late, Err(AcquireError::TimedOut(_))));
    assert_eq!(took, SECOND);
}

#[tokio::test(start_paused = true)]
async fn dropped_at_every_poll_it_loses_nothing() {
    for polls in 0..4 {
        let rig = Rig::with_max_size(1);
        rig.backend.once(Call::Open, Gate::Slow(SECOND));

        let _ = cut(polls, rig.pool.try_acquire_or_open()).await;

        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_and_a_tripped_breaker_are_errors() {
    let rig = Rig::with_max_size(1);
    rig.pool.breaker().trip();
    let unavailable = rig.pool.try_acquire_or_open().await;
    rig.pool.close();
    let closed = rig.pool.try_acquire_or_open().await;

    assert!(matches!(unavailable, Err(AcquireError::Unavailable(_))));
    assert!(matches!(closed, Err(AcquireError::Closed { .. })));
    assert_eq!(rig.pool.status().refusals.total(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_only_tried_does_not_stay_empty() {
    let rig = Rig::with_max_size(2);

    assert!(rig.pool.try_acquire().unwrap().is_none());
    settle().await;
    let first = rig.pool.try_acquire().unwrap();
    assert!(rig.pool.try_acquire().unwrap().is_none());
    settle().await;
    let second = rig.pool.try_acquire().unwrap();

    assert!(first.is_some() && second.is_some());
    assert!(rig.pool.try_acquire().unwrap().is_none());
    settle().await;
    assert_eq!(
        rig.backend.calls(Call::Open),
        2,
        "there is no room for a third"
    );
}

#[tokio::test(start_paused = true)]
async fn many_tries_begin_one_open() {
    let rig = Rig::with_max_size(8);
    rig.backend.always(Call::Open, Gate::Slow(SECOND));

    for _ in 0..5 {
        assert!(rig.pool.try_acquire().unwrap().is_none());
        settle().await;
    }

    assert_eq!(rig.backend.calls(Call::Open), 1);
    advance(SECOND).await;
    assert!(rig.pool.try_acquire().unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn tries_do_not_hammer_a_backend_that_is_down() {
    let rig = Rig::with_max_size(2);
    rig.backend.always(Call::Open, Gate::Fail);

    for _ in 0..100 {
        assert!(rig.pool.try_acquire().unwrap().is_none());
        advance(Duration::from_millis(10)).await;
    }

    let opens = rig.backend.calls(Call::Open);
    assert!((1..10).contains(&opens), "{opens} opens in a second");
}
