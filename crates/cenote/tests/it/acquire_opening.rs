//! Acquire by opening: the open belongs to the pool, the caller takes the first resource that is
//! opened or returned, and a failure reaches the caller.

use std::error::Error;
use std::time::Duration;

use cenote::config::OnOpenError;
use cenote::{AcquireError, Lease, OpenError};
use cenote_testkit::clock::{advance, settle, timed};
use cenote_testkit::{Call, Fault, Gate, Rig};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_does_not_waste_the_open() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Slow(50 * MS));

    for _ in 0..4 {
        let gave_up = rig.pool.acquire_within(10 * MS).await;
        assert!(matches!(gave_up, Err(AcquireError::TimedOut(_))));
    }
    let lease = rig.pool.acquire_within(11 * MS).await.unwrap();

    assert_eq!(Lease::id(&lease), 1);
    assert_eq!(rig.backend.calls(Call::Open), 1);
}

#[tokio::test(start_paused = true)]
async fn an_open_whose_caller_is_gone_ends_on_the_shelf() {
    let rig = Rig::with_max_size(3);
    rig.backend.always(Call::Open, Gate::Slow(50 * MS));
    let callers = [rig.wait(), rig.wait(), rig.wait()];
    settle().await;

    drop(callers);
    advance(51 * MS).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.cancelled), (3, 3));
    rig.assert_full_service().await;
    assert_eq!(rig.backend.calls(Call::Open), 3);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_takes_a_returned_resource_that_comes_before_its_open_is_done() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;
    rig.backend.once(Call::Open, Gate::Slow(50 * MS));
    let waiting = rig.wait();
    advance(10 * MS).await;

    drop(held);
    let (lease, waited) = timed(waiting).await;

    assert_eq!(Lease::id(&lease.unwrap()), 1);
    assert_eq!(waited, Duration::ZERO);
    advance(50 * MS).await;
    assert_eq!(rig.pool.status().idle, 2, "the open is not wasted");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_takes_an_opened_resource_that_comes_before_a_return() {
    let rig = Rig::with_max_size(2);
    let _held = rig.acquire().await;
    rig.backend.once(Call::Open, Gate::Slow(50 * MS));

    let (lease, waited) = timed(rig.acquire()).await;

    assert_eq!(Lease::id(&lease), 2);
    assert!(waited >= 50 * MS && waited <= 52 * MS);
}

#[tokio::test(start_paused = true)]
async fn each_waiter_has_one_open_and_no_more() {
    let rig = Rig::with_max_size(10);
    rig.backend.always(Call::Open, Gate::Slow(50 * MS));

    let waiting = [rig.wait(), rig.wait(), rig.wait()];
    settle().await;
    assert_eq!(rig.pool.status().opening, 3);
    advance(200 * MS).await;
    for waiter in waiting {
        drop(waiter.await.unwrap());
    }

    assert_eq!(rig.backend.calls(Call::Open), 3);
}

#[tokio::test(start_paused = true)]
async fn at_most_max_opening_run_at_once() {
    let rig = Rig::new(|pool| pool.max_size(10).max_opening(2));
    rig.backend.always(Call::Open, Gate::Slow(100 * MS));
    let mut tasks = Vec::new();
    for _ in 0..6 {
        let pool = rig.pool.clone();
        tasks.push(tokio::spawn(async move { pool.acquire().await }));
    }

    let mut held = Vec::new();
    let mut done = 0;
    for _ in 0..3 {
        advance(50 * MS).await;
        assert_eq!(rig.pool.status().opening, 2);
        assert_eq!(rig.backend.alive(), done);
        advance(51 * MS).await;
        done += 2;
    }
    for task in tasks {
        held.push(task.await.unwrap().unwrap());
    }

    assert_eq!(rig.pool.status().in_use, 6);
}

#[tokio::test(start_paused = true)]
async fn a_hung_open_is_passed_by_another_where_there_is_room() {
    let rig = Rig::with_max_size(2);
    rig.backend.once(Call::Open, Gate::Hang);

    let (lease, waited) = timed(rig.acquire()).await;

    assert!(waited >= SECOND && waited <= SECOND + 2 * MS, "{waited:?}");
    assert_eq!(rig.pool.status().opening, 1, "the hung one is still there");
    drop(lease);
    advance(10 * SECOND).await;
    assert_eq!(rig.pool.status().opening, 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn opens_that_hang_do_not_stop_growth_though_as_many_hang_as_may_run() {
    let rig = Rig::new(|pool| {
        pool.max_size(10)
            .max_opening(2)
            .open_timeout(3 * SECOND)
            .on_open_error(OnOpenError::Retry)
    });
    rig.backend.once(Call::Open, Gate::Hang);
    rig.backend.once(Call::Open, Gate::Hang);

    let (lease, waited) = timed(rig.pool.acquire()).await;

    drop(lease.unwrap());
    assert!(waited >= 2 * SECOND && waited < 3 * SECOND, "{waited:?}");
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn an_open_that_was_held_up_is_not_tried_again_beside_as_many_as_may_run() {
    let rig = Rig::new(|pool| {
        pool.max_size(10)
            .max_opening(1)
            .open_timeout(3 * SECOND)
            .on_open_error(OnOpenError::Retry)
    });
    rig.backend.always(Call::Open, Gate::Hang);
    let pool = rig.pool.clone();
    let waiter = tokio::spawn(async move { pool.acquire_within(20 * SECOND).await.map(drop) });

    let mut most = 0;
    for _ in 0..190 {
        advance(100 * MS).await;
        most = most.max(rig.pool.status().opening);
    }

    // One open for each second until its limit ends it, and the one that has just begun.
    assert!(most <= 4, "{most}");
    assert!(waiter.await.unwrap().is_err());
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn an_open_that_takes_too_long_says_so() {
    let rig = Rig::new(|pool| pool.max_size(1).open_timeout(2 * SECOND));
    rig.backend.once(Call::Open, Gate::Hang);

    let (told, waited) = timed(rig.pool.acquire()).await;

    let Err(AcquireError::Open { error, .. }) = told else {
        panic!("the open was to time out");
    };
    assert!(matches!(error, OpenError::TimedOut(limit) if limit == 2 * SECOND));
    assert!(waited >= 2 * SECOND && waited <= 2 * SECOND + 2 * MS);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_open_fails_its_waiter_at_once_with_its_cause() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Fail);

    let (told, waited) = timed(rig.pool.acquire()).await;

    let error = told.unwrap_err();
    assert!(error.is_retryable());
    let cause = error.source().unwrap().downcast_ref::<Fault>();
    assert_eq!((cause, waited), (Some(&Fault(Call::Open)), Duration::ZERO));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_open_fails_its_waiter_with_its_message() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Panic);

    let told = rig.pool.acquire().await;

    let Err(AcquireError::Open { error, .. }) = told else {
        panic!("the open was to panic");
    };
    assert!(matches!(&error, OpenError::Panicked(text) if text.contains("the backend panicked")));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_open_fails_the_oldest_waiter_and_the_next_gets_its_own_try() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let (first, second, third) = (rig.wait(), rig.wait(), rig.wait());
    rig.backend.once(Call::Open, Gate::Fail);
    rig.backend.once(Call::Open, Gate::Fail);

    Lease::discard(held);

    assert!(matches!(first.await, Err(AcquireError::Open { .. })));
    assert!(matches!(second.await, Err(AcquireError::Open { .. })));
    let served = third.await.unwrap();
    assert_eq!(served.serial, 2);
    assert_eq!(rig.pool.status().open_failed, 2);
}

#[tokio::test(start_paused = true)]
async fn one_failed_open_fails_one_caller() {
    let rig = Rig::with_max_size(4);
    rig.backend.always(Call::Open, Gate::Slow(10 * MS));
    rig.backend.once(Call::Open, Gate::Fail);
    let waiting = [rig.wait(), rig.wait(), rig.wait()];

    let mut told = Vec::new();
    for waiter in waiting {
        told.push(waiter.await.map(|lease| lease.serial).is_ok());
    }

    assert_eq!(told, [false, true, true]);
}

#[tokio::test(start_paused = true)]
async fn retry_opens_again_until_it_succeeds() {
    let rig = Rig::new(|pool| pool.max_size(1).on_open_error(OnOpenError::Retry));
    for gate in [Gate::Fail, Gate::Panic, Gate::Fail] {
        rig.backend.once(Call::Open, gate);
    }

    let (lease, waited) = timed(rig.acquire()).await;

    assert_eq!(lease.serial, 1);
    assert_eq!(rig.pool.status().open_failed, 3);
    assert!(waited > 20 * MS && waited < SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn retry_backs_off_until_the_deadline_and_tells_the_last_error() {
    let rig = Rig::new(|pool| pool.max_size(1).on_open_error(OnOpenError::Retry));
    rig.backend.always(Call::Open, Gate::Fail);

    let (told, waited) = timed(rig.pool.acquire_within(4 * SECOND)).await;

    let tries = rig.backend.calls(Call::Open);
    assert!((5..=14).contains(&tries), "{tries} tries in four seconds");
    assert!(waited >= 4 * SECOND && waited <= 4 * SECOND + 2 * MS);
    let error = told.unwrap_err();
    assert!(matches!(error, AcquireError::TimedOut(_)));
    let cause = error.source().unwrap().downcast_ref::<Fault>();
    assert_eq!(cause, Some(&Fault(Call::Open)));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn retry_serves_the_waiter_by_a_return_if_that_comes_first() {
    let rig = Rig::new(|pool| pool.max_size(2).on_open_error(OnOpenError::Retry));
    let held = rig.acquire().await;
    rig.backend.always(Call::Open, Gate::Fail);
    let waiting = rig.wait();
    advance(500 * MS).await;

    drop(held);

    assert_eq!(Lease::id(&waiting.await.unwrap()), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_success_forgets_the_last_open_error() {
    let rig = Rig::new(|pool| pool.max_size(1).on_open_error(OnOpenError::Retry));
    rig.backend.once(Call::Open, Gate::Fail);
    let _held = rig.acquire().await;

    let told = rig.pool.acquire_within(10 * MS).await.unwrap_err();

    assert!(told.source().is_none());
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_the_pool_tries_again_for_its_waiters_though_no_caller_polls() {
    let rig = Rig::with_max_size(2);
    let _held = rig.acquire().await;
    rig.backend.once(Call::Open, Gate::Fail);
    let told = rig.wait();
    let pool = rig.pool.clone();
    let second = tokio::spawn(async move { pool.acquire().await.map(|lease| lease.serial) });

    settle().await;
    let at_once = rig.backend.calls(Call::Open);
    // Longer than the first back-off, and shorter than the second after which the waiter looks.
    advance(200 * MS).await;

    assert!(told.await.is_err());
    assert_eq!((at_once, rig.backend.calls(Call::Open)), (2, 3));
    assert!(second.is_finished(), "{:?}", rig.pool.status());
}

#[tokio::test(start_paused = true)]
async fn an_open_without_a_waiter_is_not_begun() {
    let rig = Rig::with_max_size(1);
    let waiting = rig.wait();

    drop(waiting);
    settle().await;

    let status = rig.pool.status();
    assert_eq!((status.total, rig.backend.calls(Call::Open)), (0, 0));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn tries_that_fail_together_back_off_as_one() {
    let rig = Rig::new(|pool| pool.max_size(4).on_open_error(OnOpenError::Retry));
    rig.backend.always(Call::Open, Gate::Fail);
    let waiting: Vec<_> = (0..4).map(|_| rig.wait()).collect();

    for _ in 0..80 {
        advance(5 * MS).await;
    }

    // Four opens at once, and again after at most 50, 100 and 200 ms.
    let tries = rig.pool.status().open_failed;
    assert!((16..=32).contains(&tries), "{tries} tries");
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn a_rest_between_two_tries_ends_when_another_try_succeeds() {
    let rig = Rig::new(|pool| {
        let pool = pool.max_size(4).on_open_error(OnOpenError::Retry);
        pool.acquire_timeout(60 * SECOND)
    });
    rig.backend.always(Call::Open, Gate::Fail);
    let waiting: Vec<_> = (0..4).map(|_| rig.wait()).collect();
    advance(20 * SECOND).await;
    rig.backend.heal();
    let mut served = Vec::new();

    for (nth, one) in waiting.into_iter().enumerate() {
        let (lease, took) = timed(one).await;
        // The first waits for its back-off to end, and its success ends the back-off of all others.
        assert!(nth == 0 || took < MS, "number {nth} took {took:?}");
        served.push(lease);
    }

    assert_eq!(rig.pool.status().in_use, 4);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_pool_does_not_try_a_failed_open_again() {
    let rig = Rig::new(|pool| pool.max_size(1).on_open_error(OnOpenError::Retry));
    rig.backend.always(Call::Open, Gate::Fail);
    let waiter = rig.wait();
    advance(SECOND).await;

    rig.pool.suspend();
    advance(SECOND).await;
    let tries = rig.pool.status().open_failed;
    advance(60 * SECOND).await;

    assert_eq!(rig.pool.status().open_failed, tries);
    drop(waiter);
    rig.backend.always(Call::Open, Gate::Pass);
    rig.pool.resume();
    rig.assert_full_service().await;
}
