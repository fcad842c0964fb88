//! Closing and waiting for it: `close_within` ends when all leases are returned, or at its limit,
//! and names the leases still out. Also closing without a runtime, and by dropping the last handle.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cenote::{AcquireError, CloseReason, Lease, Pool};
use cenote_testkit::clock::{advance, eventually, settle};
use cenote_testkit::{Backend, Call, Gate, GatedManager, Rig, cut};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Closes within `limit` in a task of its own, which returns the ids of the resources that were
/// still out.
fn close_within(rig: &Rig, limit: Duration) -> tokio::task::JoinHandle<Vec<u64>> {
    let pool = rig.pool.clone();
    tokio::spawn(async move {
        let holders = pool.close_within(limit).await.leases;
        holders.iter().map(|holder| holder.id).collect()
    })
}

#[tokio::test(start_paused = true)]
async fn it_ends_as_soon_as_the_last_lease_is_returned_and_closed() {
    let rig = Rig::with_max_size(2);
    let (first, second) = (rig.acquire().await, rig.acquire().await);
    rig.backend.always(Call::Close, Gate::Slow(SECOND));
    let closing = close_within(&rig, SECOND * 60);

    advance(SECOND).await;
    drop(first);
    advance(SECOND).await;
    let one_out = closing.is_finished();
    drop(second);
    advance(SECOND - MS).await;
    let not_closed = closing.is_finished();
    advance(MS).await;

    assert!(!one_out && !not_closed);
    assert!(closing.is_finished());
    assert!(closing.await.unwrap().is_empty());
    assert_eq!(rig.backend.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn it_ends_at_its_limit_and_names_the_leases_still_out_with_their_call_sites() {
    let rig = Rig::with_max_size(2);
    let returned = rig.acquire().await;
    let line = line!() + 1;
    let held = rig.acquire().await;
    Lease::label(&held, "the night shift");
    drop(returned);

    let holders = rig.pool.close_within(SECOND * 3).await.leases;

    assert_eq!(holders.len(), 1);
    let holder = &holders[0];
    assert_eq!((holder.id, holder.held_for), (2, SECOND * 3));
    assert_eq!((holder.site.file(), holder.site.line()), (file!(), line));
    assert_eq!(holder.label.as_deref(), Some("the night shift"));
    assert_eq!(rig.backend.alive(), 1);
    drop(held);
    settle().await;
    assert_eq!(rig.backend.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn it_does_not_end_before_its_limit_while_a_lease_is_out() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let closing = close_within(&rig, SECOND * 7);

    advance(SECOND * 7 - MS).await;
    let early = closing.is_finished();
    advance(MS).await;

    assert!(!early);
    assert_eq!(closing.await.unwrap(), [1]);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn with_no_time_at_all_it_still_closes_and_reports() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;
    drop(rig.acquire().await);

    let holders = rig.pool.close_within(Duration::ZERO).await.leases;
    settle().await;

    assert_eq!(holders.len(), 1);
    assert!(rig.pool.is_closed());
    assert_eq!((rig.backend.alive(), held.serial), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn more_time_than_there_is_does_not_harm() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let closing = close_within(&rig, Duration::MAX);
    settle().await;

    drop(held);
    settle().await;

    assert!(closing.is_finished());
}

#[tokio::test(start_paused = true)]
async fn an_unused_pool_is_closed_at_once() {
    let rig = Rig::with_max_size(1);

    let closing = close_within(&rig, SECOND * 60);
    settle().await;

    assert!(closing.is_finished());
}

#[tokio::test(start_paused = true)]
async fn waiters_are_told_by_the_first_poll() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = rig.wait();

    let cut_off = cut(1, rig.pool.close_within(SECOND * 60)).await;

    assert!(cut_off.is_none());
    assert!(rig.pool.is_closed());
    assert!(matches!(waiting.await, Err(AcquireError::Closed { .. })));
    drop(held);
    settle().await;
    assert_eq!(rig.backend.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn several_may_wait_for_the_same_close() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    rig.pool.close();
    let closing = [
        close_within(&rig, SECOND * 60),
        close_within(&rig, SECOND * 60),
        close_within(&rig, SECOND),
    ];

    advance(SECOND).await;
    let finished = closing.each_ref().map(tokio::task::JoinHandle::is_finished);
    drop(held);
    settle().await;

    assert_eq!(finished, [false, false, true]);
    assert!(closing.iter().all(tokio::task::JoinHandle::is_finished));
    assert_eq!(rig.recorder.of("pool_closed").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_an_open_on_its_way_and_for_its_close() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Slow(SECOND * 2));
    let waiting = rig.wait();
    settle().await;
    let closing = close_within(&rig, SECOND * 60);

    advance(SECOND * 2 - MS).await;
    let early = closing.is_finished();
    advance(MS).await;

    assert!(!early);
    assert!(closing.is_finished());
    assert_eq!(
        (rig.backend.alive(), rig.backend.calls(Call::Close)),
        (0, 1)
    );
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn it_does_not_wait_for_the_back_off_of_an_open_that_failed() {
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .on_open_error(cenote::config::OnOpenError::Retry)
            .acquire_timeout(None)
    });
    rig.backend.always(Call::Open, Gate::Fail);
    let waiting = rig.wait();
    tokio::time::sleep(SECOND * 60).await;
    let closing = close_within(&rig, SECOND * 60);

    advance(MS * 10).await;

    assert!(closing.is_finished(), "{:?}", rig.pool.status());
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn hung_closes_delay_it_by_close_timeout_and_no_more() {
    let rig = Rig::new(|pool| pool.max_size(2).close_timeout(SECOND * 3));
    drop((rig.acquire().await, rig.acquire().await));
    rig.backend.always(Call::Close, Gate::Hang);
    let closing = close_within(&rig, SECOND * 60);

    advance(SECOND * 3 - MS).await;
    let early = closing.is_finished();
    advance(MS).await;

    assert!(!early);
    assert!(closing.is_finished());
}

#[tokio::test(start_paused = true)]
async fn panicking_closes_do_not_delay_it() {
    let rig = Rig::with_max_size(2);
    drop((rig.acquire().await, rig.acquire().await));
    rig.backend.always(Call::Close, Gate::Panic);

    let closing = close_within(&rig, SECOND * 60);
    settle().await;

    assert!(closing.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_thread_without_a_runtime_can_close() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;
    drop(rig.acquire().await);
    let pool = rig.pool.clone();

    thread::spawn(move || {
        pool.close();
        drop(held);
    })
    .join()
    .unwrap();
    settle().await;

    assert_eq!(
        (rig.backend.alive(), rig.backend.calls(Call::Close)),
        (0, 2)
    );
    assert_eq!(rig.pool.status().closes.by(CloseReason::PoolClosed), 2);
}

#[test]
fn a_program_without_a_runtime_can_close() {
    let backend = Arc::new(Backend::default());
    let pool = Pool::builder(GatedManager(Arc::clone(&backend)))
        .build()
        .unwrap();
    let held = pool.acquire_blocking().unwrap();
    drop(pool.acquire_blocking().unwrap());

    pool.close();
    drop(held);
    eventually("all is closed", || backend.alive() == 0);

    assert!(matches!(
        pool.acquire_blocking(),
        Err(AcquireError::Closed { .. })
    ));
    assert_eq!((backend.alive(), backend.calls(Call::Close)), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_closes() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    let another = rig.pool.clone();

    let Rig {
        pool,
        backend,
        recorder,
    } = rig;
    drop(pool);
    settle().await;
    let with_one_left = backend.alive();
    drop(another);
    settle().await;

    assert_eq!(with_one_left, 1);
    assert_eq!((backend.alive(), backend.calls(Call::Close)), (0, 1));
    assert_eq!(recorder.of("closed"), ["closed 1 pool_closed"]);
    assert_eq!(recorder.of("pool_closed").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_outlives_the_last_handle_and_its_resource_is_closed_on_return() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let Rig { pool, backend, .. } = rig;

    drop(pool);
    settle().await;
    let outlived = held.serial;
    drop(held);
    settle().await;

    assert_eq!(outlived, 1);
    assert_eq!((backend.alive(), backend.calls(Call::Close)), (0, 1));
    assert_eq!(Arc::strong_count(&backend), 1, "the pool lives on");
}

#[tokio::test(start_paused = true)]
async fn a_close_that_is_not_done_in_time_is_no_success() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    rig.backend.always(Call::Close, Gate::Slow(SECOND * 2));

    let early = rig.pool.close_within(SECOND).await;
    let late = rig.pool.close_within(SECOND * 2).await;

    assert_eq!((early.leases.len(), early.unfinished), (0, 1));
    assert!(!early.is_empty() && late.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lease_still_out_is_not_counted_as_unfinished() {
    let rig = Rig::with_max_size(3);
    let held = (rig.acquire().await, rig.acquire().await);
    drop(rig.acquire().await);
    rig.backend.always(Call::Close, Gate::Hang);

    let left = rig.pool.close_within(SECOND).await;

    assert_eq!((left.leases.len(), left.unfinished), (2, 1));
    drop(held);
}
