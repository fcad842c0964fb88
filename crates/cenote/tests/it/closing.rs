//! Closing: every waiter is told at once, and every open resource is closed, once, by the manager.

use std::time::Duration;

use cenote::{AcquireError, CloseReason, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig, Waiting};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Returns whether the waiter is told `Closed` now.
async fn is_told(mut waiting: Waiting) -> bool {
    waiting.is_served() && matches!(waiting.await, Err(AcquireError::Closed { .. }))
}

/// Asserts that nothing is left, and that each resource was closed once.
fn assert_gone(rig: &Rig, count: usize) {
    let status = rig.pool.status();
    assert_eq!((status.total, status.closing, status.waiting), (0, 0, 0));
    assert_eq!(rig.backend.alive(), 0);
    assert_eq!(rig.backend.calls(Call::Close), count);
    assert_eq!(rig.recorder.of("closed").len(), count);
}

#[tokio::test(start_paused = true)]
async fn every_waiter_is_told_at_once() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = [rig.wait(), rig.wait(), rig.wait()];

    rig.pool.close();

    for one in waiting {
        assert!(is_told(one).await);
    }
    assert_eq!(rig.pool.status().waiting, 0);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_is_woken_to_be_told() {
    let rig = Rig::new(|pool| pool.max_size(1).acquire_timeout(None));
    let held = rig.acquire().await;
    let pool = rig.pool.clone();
    let task = tokio::spawn(async move { pool.acquire().await.err() });
    settle().await;

    rig.pool.close();
    settle().await;

    assert!(task.is_finished());
    let told = task.await.unwrap();
    assert!(matches!(told, Some(AcquireError::Closed { .. })));
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_with_an_untaken_grant_is_told_too() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = rig.wait();
    drop(held);

    rig.pool.close();
    let told = is_told(waiting).await;
    settle().await;

    assert!(told);
    assert_gone(&rig, 1);
    assert_eq!(rig.pool.status().acquired, 1);
}

#[tokio::test(start_paused = true)]
async fn waiters_are_told_while_an_open_hangs() {
    let rig = Rig::with_max_size(2);
    rig.backend.always(Call::Open, Gate::Hang);
    let waiting = [rig.wait(), rig.wait()];
    settle().await;

    rig.pool.close();

    for one in waiting {
        assert!(is_told(one).await);
    }
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_gone(&rig, 0);
}

#[tokio::test(start_paused = true)]
async fn waiters_are_told_while_the_pool_is_suspended() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    rig.pool.suspend();
    let waiting = rig.wait();

    rig.pool.close();

    assert!(is_told(waiting).await);
    settle().await;
    assert_gone(&rig, 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lent_after_the_close() {
    let rig = Rig::with_max_size(2);
    drop(rig.acquire().await);
    rig.pool.close();

    let acquired = rig.pool.acquire().await;
    let tried = rig.pool.try_acquire();
    let lent = rig.pool.with(async |thing| thing.serial).await;

    assert!(matches!(acquired, Err(AcquireError::Closed { .. })));
    assert!(matches!(tried, Err(AcquireError::Closed { .. })));
    assert!(matches!(lent, Err(AcquireError::Closed { .. })));
    assert!(rig.pool.is_closed());
    assert!(!acquired.unwrap_err().is_retryable());
}

#[tokio::test(start_paused = true)]
async fn idle_resources_are_closed_by_the_manager() {
    let rig = Rig::with_max_size(3);
    drop((
        rig.acquire().await,
        rig.acquire().await,
        rig.acquire().await,
    ));

    rig.pool.close();
    settle().await;

    assert_gone(&rig, 3);
    assert_eq!(rig.pool.status().closes.by(CloseReason::PoolClosed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_lease_goes_on_and_its_resource_is_closed_on_return() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;

    rig.pool.close();
    advance(SECOND * 60).await;
    let while_held = (held.serial, rig.pool.status().in_use, rig.backend.alive());
    drop(held);
    settle().await;

    assert_eq!(while_held, (1, 1, 1));
    assert_eq!(rig.recorder.of("closed"), ["closed 1 pool_closed"]);
    assert_gone(&rig, 1);
}

#[tokio::test(start_paused = true)]
async fn a_dirty_resource_that_is_returned_is_not_cleaned_any_more() {
    let rig = Rig::with_max_size(1);
    let mut held = rig.acquire().await;
    held.dirty = true;

    rig.pool.close();
    drop(held);
    settle().await;

    assert_eq!(rig.backend.calls(Call::Clean), 0);
    assert_gone(&rig, 1);
}

#[tokio::test(start_paused = true)]
async fn an_awaited_release_ends_when_the_resource_is_closed() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    rig.pool.close();

    Lease::release(held).await;

    assert_gone(&rig, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_can_be_detached_after_the_close() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    rig.pool.close();

    let thing = Lease::detach(held);
    settle().await;

    assert_eq!((thing.serial, rig.backend.alive()), (1, 1));
    assert_eq!(rig.pool.status().total, 0);
    assert_eq!(rig.backend.calls(Call::Close), 0);
}

#[tokio::test(start_paused = true)]
async fn an_open_that_completes_after_the_close_is_closed_exactly_once() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Slow(SECOND));
    let waiting = rig.wait();
    advance(SECOND / 2).await;

    rig.pool.close();
    let opening = rig.pool.status().opening;
    advance(SECOND / 2).await;

    assert!(is_told(waiting).await);
    assert_eq!(opening, 1);
    assert_eq!(rig.recorder.of("closed"), ["closed 1 pool_closed"]);
    assert_gone(&rig, 1);
}

#[tokio::test(start_paused = true)]
async fn an_open_that_has_not_begun_is_not_begun() {
    let rig = Rig::with_max_size(1);
    let waiting = rig.wait();

    rig.pool.close();
    settle().await;

    assert!(is_told(waiting).await);
    assert_eq!(rig.backend.calls(Call::Open), 0);
    assert_gone(&rig, 0);
}

#[tokio::test(start_paused = true)]
async fn a_resource_under_check_is_closed_when_the_check_ends() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    advance(SECOND * 10).await;
    rig.backend.always(Call::Check, Gate::Slow(SECOND));
    let waiting = rig.wait();
    settle().await;

    rig.pool.close();
    let checking = rig.pool.status().checking;
    let told = is_told(waiting).await;
    advance(SECOND).await;

    assert!(told);
    assert_eq!(checking, 1);
    assert_eq!(rig.recorder.of("closed"), ["closed 1 pool_closed"]);
    assert_gone(&rig, 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_under_cleaning_is_closed_when_the_cleaning_ends() {
    let rig = Rig::with_max_size(1);
    let mut lease = rig.acquire().await;
    lease.dirty = true;
    rig.backend.always(Call::Clean, Gate::Slow(SECOND));
    drop(lease);
    settle().await;

    rig.pool.close();
    let cleaning = rig.pool.status().cleaning;
    advance(SECOND).await;

    assert_eq!(cleaning, 1);
    assert_eq!(rig.recorder.of("closed"), ["closed 1 pool_closed"]);
    assert_gone(&rig, 1);
}

#[tokio::test(start_paused = true)]
async fn closing_twice_is_closing_once() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;
    drop(rig.acquire().await);

    rig.pool.close();
    rig.pool.close();
    rig.pool.clone().close();
    settle().await;
    drop(held);
    rig.pool.close();
    settle().await;

    assert_eq!(rig.recorder.of("pool_closed"), ["pool_closed in_use=1"]);
    assert_gone(&rig, 2);
}

#[tokio::test(start_paused = true)]
async fn a_hung_close_ends_by_close_timeout() {
    let rig = Rig::new(|pool| pool.close_timeout(SECOND * 3));
    drop(rig.acquire().await);
    rig.backend.always(Call::Close, Gate::Hang);

    rig.pool.close();
    advance(SECOND * 3 - MS).await;
    let hung = rig.pool.status().closing;
    advance(MS).await;

    assert_eq!(hung, 1);
    assert_eq!(rig.recorder.of("callback_failed").len(), 1);
    assert_gone(&rig, 1);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_close_is_a_close() {
    let rig = Rig::with_max_size(2);
    drop((rig.acquire().await, rig.acquire().await));
    rig.backend.always(Call::Close, Gate::Panic);

    rig.pool.close();
    settle().await;

    assert_eq!(rig.recorder.of("callback_failed").len(), 2);
    assert_gone(&rig, 2);
}
