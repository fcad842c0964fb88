//! Failures of deadpool and bb8 that were reproduced by running them, none of which happens here.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use cenote::AcquireError;
use cenote::config::OnOpenError;
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::support::rigs::{compete, hold};

/// deadpool: `resize` forgot only as many permits as there were surplus objects, so 16 lived after
/// `resize(4)`.
#[tokio::test(start_paused = true)]
async fn a_shrink_while_little_was_open_left_the_old_cap_in_force() {
    let rig = Rig::with_max_size(16);
    drop(rig.acquire().await);

    rig.pool.resize(4).unwrap();
    let mut callers = JoinSet::new();
    for _ in 0..16 {
        let pool = rig.pool.clone();
        callers.spawn(async move {
            let _lease = pool.acquire().await;
            std::future::pending::<()>().await;
        });
    }
    settle().await;

    assert_eq!(
        (rig.pool.status().in_use, rig.pool.status().waiting),
        (4, 12)
    );
    assert_eq!(rig.backend.peak(), 4);
    callers.shutdown().await;
    rig.assert_full_service().await;
}

/// deadpool: a shrink and a growth while all objects were out gave out permits twice, and a fifth
/// object was made.
#[tokio::test(start_paused = true)]
async fn a_shrink_and_a_growth_while_all_were_out_let_one_too_many_in() {
    let rig = Rig::with_max_size(4);
    let leases = hold(&rig, 4).await;

    rig.pool.resize(2).unwrap();
    rig.pool.resize(4).unwrap();
    let mut waiter = rig.wait();
    settle().await;

    assert!(!waiter.is_served());
    assert_eq!((rig.pool.status().total, rig.backend.peak()), (4, 4));
    drop(leases);
    drop(waiter);
    rig.assert_full_service().await;
}

/// deadpool: a panic in the predicate of `retain` poisoned the mutex, and every later `get` and
/// every drop panicked.
#[tokio::test(start_paused = true)]
async fn a_panic_in_retain_poisoned_the_pool_for_good() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;
    drop(rig.acquire().await);

    let panicked = catch_unwind(AssertUnwindSafe(|| rig.pool.retain(|_| panic!("retain"))));

    assert!(panicked.is_err());
    drop(held);
    assert_eq!(rig.pool.status().idle, 2);
    rig.assert_full_service().await;
}

/// deadpool: a `get` that was cancelled during `recycle` destroyed the healthy object: 5 cancelled
/// gets, 4 objects made.
#[tokio::test(start_paused = true)]
async fn a_get_cancelled_during_its_check_destroyed_a_healthy_resource() {
    let rig = Rig::new(|pool| pool.max_size(1).check_after_idle(Duration::ZERO));
    drop(rig.acquire().await);
    rig.backend
        .always(Call::Check, Gate::Slow(Duration::from_millis(10)));

    for _ in 0..5 {
        let cancelled = timeout(Duration::from_millis(5), rig.pool.acquire()).await;
        assert!(cancelled.is_err());
        sleep(Duration::from_millis(10)).await;
    }

    assert_eq!(rig.acquire().await.serial, 1);
    assert_eq!(rig.pool.status().closes.total(), 0);
    rig.assert_full_service().await;
}

/// deadpool: an open of 50 ms was thrown away at its caller's deadline of 30 ms, twenty times in a
/// row, and so for ever.
#[tokio::test(start_paused = true)]
async fn an_open_that_took_longer_than_its_callers_patience_never_succeeded() {
    let rig = Rig::with_max_size(1);
    rig.backend
        .always(Call::Open, Gate::Slow(Duration::from_millis(50)));
    let impatient = || rig.pool.acquire_within(Duration::from_millis(30));

    let first = impatient().await;
    let second = impatient().await;

    assert!(matches!(first, Err(AcquireError::TimedOut(_))));
    assert_eq!(second.unwrap().serial, 1);
    assert_eq!(rig.backend.calls(Call::Open), 1);
    rig.assert_full_service().await;
}

/// bb8: a panic in `connect` leaked the approval to connect, and a pool of one was dead.
#[tokio::test(start_paused = true)]
async fn a_panic_in_open_killed_a_pool_of_one() {
    let rig = Rig::with_max_size(1);
    for _ in 0..3 {
        rig.backend.once(Call::Open, Gate::Panic);
        rig.pool.acquire().await.unwrap_err();
    }

    let status = rig.pool.status();

    assert_eq!(
        (status.opening, status.total, status.open_failed),
        (0, 0, 3)
    );
    rig.assert_full_service().await;
}

/// bb8: the error of a failing open never reached the caller, which got `TimedOut` 3 s later.
#[tokio::test(start_paused = true)]
async fn the_error_of_a_failed_open_was_hidden_behind_a_timeout() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Fail);

    let told = timeout(Duration::from_millis(1), rig.pool.acquire()).await;

    let error = told.expect("it was not told at once").unwrap_err();
    assert!(matches!(error, AcquireError::Open { .. }));
    assert_eq!(
        error.source().unwrap().to_string(),
        "the backend refused Open"
    );
    rig.assert_full_service().await;
}

/// bb8 with `retry_connection`: there the error was lost as well.
#[tokio::test(start_paused = true)]
async fn the_error_of_a_retried_open_was_lost_in_the_timeout() {
    let rig = Rig::new(|pool| pool.max_size(1).on_open_error(OnOpenError::Retry));
    rig.backend.always(Call::Open, Gate::Fail);

    let error = rig.pool.acquire().await.unwrap_err();

    assert!(matches!(error, AcquireError::TimedOut(_)));
    let failed = error.source().unwrap();
    assert_eq!(failed.to_string(), "the backend refused Open");
    rig.assert_full_service().await;
}

/// bb8: one greedy task that returned and asked again got 2881 leases, four others 4 in total.
#[tokio::test(start_paused = true)]
async fn a_greedy_task_starved_all_others() {
    let rig = Rig::with_max_size(1);
    let (mut tasks, shares) = compete(&rig.pool, Duration::from_millis(1));

    sleep(Duration::from_secs(4)).await;

    tasks.shutdown().await;
    let shares: Vec<_> = shares
        .iter()
        .map(|share| share.load(Ordering::Relaxed))
        .collect();
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(*least > 300 && most - least <= 1, "{shares:?}");
    rig.assert_full_service().await;
}

/// bb8: a cancelled `get` was never counted as ended, so that `pending_gets` drifted upward.
#[tokio::test(start_paused = true)]
async fn cancelled_gets_were_counted_as_pending_for_ever() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;

    for _ in 0..10 {
        drop(rig.wait());
    }

    let status = rig.pool.status();
    assert_eq!((status.waiting, status.cancelled), (0, 10));
    assert_eq!(status.oldest_wait, None);
    drop(held);
    rig.assert_full_service().await;
}

/// bb8: the measured wait started again with every wake, so that it was too short.
#[tokio::test(start_paused = true)]
async fn the_wait_was_measured_only_from_the_last_wake() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let before = rig.pool.status().wait_time;
    let waiter = rig.wait();

    advance(Duration::from_secs(2)).await;
    rig.backend
        .once(Call::Clean, Gate::Slow(Duration::from_secs(1)));
    let mut held = held;
    held.dirty = true;
    drop(held);
    drop(waiter.await.unwrap());

    let waited = rig.pool.status().wait_time - before;
    assert!(waited >= Duration::from_secs(3), "{waited:?}");
}
