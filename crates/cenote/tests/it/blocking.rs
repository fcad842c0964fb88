//! Threads acquire too: without a runtime, in the same queue as the tasks, and with the same
//! promises.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cenote::{AcquireError, Lease, OpenError};
use cenote_testkit::clock::eventually;
use cenote_testkit::{Call, Gate, Rig};

use crate::support::runtimes::{real_now, with_workers};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn threads_share_a_pool_without_any_runtime() {
    let rig = Rig::with_max_size(3);

    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for nth in 0..50 {
                    let mut lease = rig.pool.acquire_blocking().unwrap();
                    lease.dirty = nth % 7 == 0;
                    lease.broken = nth % 11 == 0;
                }
            });
        }
    });

    let status = rig.pool.status();
    assert_eq!((status.acquired, status.released), (400, 400));
    assert_eq!((status.in_use, status.waiting), (0, 0));
    assert!(rig.backend.peak() <= 3, "{}", rig.backend.peak());
    with_workers(2).block_on(rig.assert_full_service());
}

#[test]
fn threads_and_tasks_share_a_pool() {
    let rig = Rig::with_max_size(2);
    let runtime = with_workers(2);
    let mut tasks = Vec::new();

    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    drop(rig.pool.acquire_blocking().unwrap());
                }
            });
            let pool = rig.pool.clone();
            tasks.push(runtime.spawn(async move {
                for _ in 0..50 {
                    let lease = pool.acquire().await.unwrap();
                    tokio::task::yield_now().await;
                    drop(lease);
                }
            }));
        }
    });
    for task in tasks {
        runtime.block_on(task).unwrap();
    }

    assert_eq!(rig.pool.status().acquired, 400);
    assert!(rig.backend.peak() <= 2, "{}", rig.backend.peak());
    runtime.block_on(rig.assert_full_service());
}

#[test]
fn threads_and_tasks_wait_in_one_queue() {
    let rig = Rig::with_max_size(1);
    let runtime = with_workers(2);
    let held = rig.pool.acquire_blocking().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (mut tasks, mut threads) = (Vec::new(), Vec::new());
    for nth in 0..8 {
        let (pool, order) = (rig.pool.clone(), Arc::clone(&order));
        if nth % 2 == 0 {
            tasks.push(runtime.spawn(async move {
                let lease = pool.acquire().await.unwrap();
                order.lock().unwrap().push(nth);
                drop(lease);
            }));
        } else {
            threads.push(thread::spawn(move || {
                let lease = pool.acquire_blocking().unwrap();
                order.lock().unwrap().push(nth);
                drop(lease);
            }));
        }
        eventually("it waits", || rig.pool.status().waiting == nth + 1);
    }

    drop(held);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    for task in tasks {
        runtime.block_on(task).unwrap();
    }

    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_thread_gives_up_when_its_time_is_over() {
    let rig = Rig::new(|pool| pool.max_size(1).acquire_timeout(40 * MS));
    let held = rig.pool.acquire_blocking().unwrap();

    for (limit, expected) in [(None, 40 * MS), (Some(20 * MS), 20 * MS)] {
        let started = real_now();
        let told = match limit {
            None => rig.pool.acquire_blocking(),
            Some(limit) => rig.pool.acquire_blocking_within(limit),
        };
        let took = real_now() - started;
        assert!(matches!(told, Err(AcquireError::TimedOut(_))));
        assert!(took >= expected && took < SECOND, "{took:?}");
    }

    assert_eq!(
        (rig.pool.status().timed_out, rig.pool.status().waiting),
        (2, 0)
    );
    drop(held);
    assert!(rig.pool.acquire_blocking().is_ok());
}

#[test]
fn a_thread_without_time_takes_only_an_idle_resource() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Slow(20 * MS));

    let nothing = rig.pool.acquire_blocking_within(Duration::ZERO);
    assert!(matches!(nothing, Err(AcquireError::TimedOut(_))));
    drop(rig.pool.acquire_blocking().unwrap());

    assert!(rig.pool.acquire_blocking_within(Duration::ZERO).is_ok());
}

#[test]
fn a_thread_can_wait_for_ever() {
    for limit in [None, Some(Duration::MAX)] {
        let rig = Rig::new(|pool| pool.max_size(1).acquire_timeout(10 * MS));
        let held = rig.pool.acquire_blocking_within(None).unwrap();
        let pool = rig.pool.clone();
        let waiting = thread::spawn(move || pool.acquire_blocking_within(limit).map(drop));
        eventually("it waits", || rig.pool.status().waiting == 1);

        // A blocked thread waits in real time: long enough for the limit of the pool to be over.
        thread::sleep(30 * MS);
        assert!(!waiting.is_finished());
        drop(held);

        assert!(waiting.join().unwrap().is_ok());
    }
}

#[test]
fn a_thread_is_not_fooled_by_being_unparked() {
    let rig = Rig::with_max_size(1);
    let held = rig.pool.acquire_blocking().unwrap();
    let pool = rig.pool.clone();
    let waiting = thread::spawn(move || pool.acquire_blocking().map(|lease| Lease::uses(&lease)));

    for _ in 0..50 {
        waiting.thread().unpark();
        thread::yield_now();
    }
    eventually("it waits", || rig.pool.status().waiting == 1);
    waiting.thread().unpark();
    drop(held);

    assert_eq!(waiting.join().unwrap().unwrap(), 2);
}

#[test]
fn a_cancelled_task_passes_its_turn_on_to_a_thread() {
    let rig = Rig::with_max_size(1);
    let held = rig.pool.acquire_blocking().unwrap();
    let (first, second) = (rig.wait(), rig.wait());
    let pool = rig.pool.clone();
    let waiting = thread::spawn(move || pool.acquire_blocking().map(|lease| Lease::id(&lease)));
    eventually("all wait", || rig.pool.status().waiting == 3);

    drop(second);
    drop(held);
    drop(first);

    assert_eq!(waiting.join().unwrap().unwrap(), 1);
}

#[test]
fn a_thread_that_gave_up_is_passed_over() {
    let rig = Rig::with_max_size(1);
    let runtime = with_workers(2);
    let held = rig.pool.acquire_blocking().unwrap();
    let pool = rig.pool.clone();
    let hasty = thread::spawn(move || pool.acquire_blocking_within(50 * MS).map(drop));
    eventually("one waits", || rig.pool.status().waiting == 1);
    let pool = rig.pool.clone();
    let patient = runtime.spawn(async move { pool.acquire().await.map(|lease| Lease::id(&lease)) });

    assert!(hasty.join().unwrap().is_err());
    drop(held);

    assert_eq!(runtime.block_on(patient).unwrap().unwrap(), 1);
}

#[test]
fn a_thread_has_the_room_that_a_discard_freed() {
    let rig = Rig::with_max_size(1);
    let held = rig.pool.acquire_blocking().unwrap();
    let pool = rig.pool.clone();
    let waiting = thread::spawn(move || pool.acquire_blocking().map(|lease| lease.serial));
    eventually("it waits", || rig.pool.status().waiting == 1);

    Lease::discard(held);

    assert_eq!(waiting.join().unwrap().unwrap(), 2);
}

#[test]
fn a_thread_is_told_why_an_open_failed() {
    let rig = Rig::new(|pool| pool.max_size(1).open_timeout(20 * MS));
    let told = |gate| {
        rig.backend.once(Call::Open, gate);
        match rig.pool.acquire_blocking() {
            Err(AcquireError::Open { error, .. }) => error,
            other => panic!("{gate:?}: {other:?}"),
        }
    };

    assert!(matches!(told(Gate::Fail), OpenError::Failed(_)));
    assert!(matches!(told(Gate::Panic), OpenError::Panicked(_)));
    assert!(matches!(told(Gate::Hang), OpenError::TimedOut(_)));
    assert!(rig.pool.acquire_blocking().is_ok());
}

/// A thread used to try first, which began an open. One that failed before the thread queued told
/// its error to no caller, and the thread waited for a second open.
#[test]
fn a_thread_is_told_of_an_open_that_fails_before_the_thread_sleeps() {
    for _ in 0..200 {
        let rig = Rig::with_max_size(1);
        rig.backend.once(Call::Open, Gate::Fail);

        let told = rig.pool.acquire_blocking().map(drop);

        assert!(matches!(told, Err(AcquireError::Open { .. })), "{told:?}");
        assert_eq!(rig.backend.calls(Call::Open), 1);
    }
}

#[test]
fn a_thread_that_waits_is_told_when_the_pool_closes() {
    let rig = Rig::with_max_size(1);
    let held = rig.pool.acquire_blocking().unwrap();
    let pool = rig.pool.clone();
    let waiting = thread::spawn(move || pool.acquire_blocking_within(None).map(drop));
    eventually("it waits", || rig.pool.status().waiting == 1);

    rig.pool.close();

    let told = waiting.join().unwrap();
    assert!(matches!(told, Err(AcquireError::Closed { .. })));
    drop(held);
    eventually("the last one is closed", || rig.backend.alive() == 0);
}

#[tokio::test]
async fn a_blocking_task_beside_a_runtime_acquires_while_the_runtime_goes_on() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let pool = rig.pool.clone();
    let blocking = tokio::task::spawn_blocking(move || {
        let lease = pool.acquire_blocking().unwrap();
        Lease::discard(lease);
        pool.acquire_blocking().unwrap().serial
    });
    while rig.pool.status().waiting == 0 {
        tokio::task::yield_now().await;
    }

    drop(held);

    assert_eq!(blocking.await.unwrap(), 2);
    rig.assert_full_service().await;
}
