//! First come, first served: no caller barges, and no place is ever lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::{AcquireError, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig, cut};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_passes_its_turn_on() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let (first, second) = (rig.wait(), rig.wait());

    drop(first);
    drop(held);

    assert_eq!(Lease::id(&second.await.unwrap()), 1);
}

#[tokio::test(start_paused = true)]
async fn waiters_are_served_in_the_order_of_their_arrival() {
    let rig = Rig::with_max_size(1);
    let mut held = rig.acquire().await;

    for round in 0..50 {
        let mut line: Vec<_> = (0..5).map(|_| rig.wait()).collect();
        for nth in 0..5 {
            drop(held);
            for (other, waiting) in line.iter_mut().enumerate().skip(nth + 1) {
                assert!(!waiting.is_served(), "round {round}: {other} before {nth}");
            }
            held = (&mut line[nth]).await.unwrap();
        }
    }

    assert_eq!(rig.pool.status().acquired, 251);
    assert_eq!(rig.pool.status().opened, 1);
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_does_not_barge_in_before_a_waiter() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut first = rig.wait();

    drop(held);
    let mut newcomer = rig.wait();
    assert!(rig.pool.try_acquire().unwrap().is_none());

    assert!(first.is_served());
    assert!(!newcomer.is_served());
}

#[tokio::test(start_paused = true)]
async fn try_acquire_sees_only_the_surplus() {
    let rig = Rig::with_max_size(2);
    let (one, two) = (rig.acquire().await, rig.acquire().await);
    let mut waiting = rig.wait();

    drop(one);
    assert!(rig.pool.try_acquire().unwrap().is_none());
    drop(two);
    let surplus = rig.pool.try_acquire().unwrap().unwrap();

    assert_eq!(Lease::id(&surplus), 2);
    assert!(waiting.is_served());
}

#[tokio::test(start_paused = true)]
async fn try_acquire_takes_nothing_from_a_waiter_for_a_check() {
    let rig = Rig::with_max_size(2);
    let both = (rig.acquire().await, rig.acquire().await);
    drop(both);
    advance(10 * SECOND).await;
    rig.backend.always(Call::Check, Gate::Slow(100 * MS));
    let waiting = rig.wait();

    assert!(rig.pool.try_acquire().unwrap().is_none());

    assert!(waiting.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_dropped_with_an_untaken_grant_passes_the_same_resource_on() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let (first, second, third) = (rig.wait(), rig.wait(), rig.wait());
    drop(held);

    drop(first);
    drop(second);
    let lease = third.await.unwrap();

    assert_eq!((Lease::id(&lease), Lease::uses(&lease)), (1, 2));
    assert_eq!(rig.pool.status().cancelled, 2);
    assert_eq!(rig.pool.status().opened, 1);
}

#[tokio::test(start_paused = true)]
async fn the_only_waiter_dropped_with_an_untaken_grant_leaves_the_resource_idle() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = rig.wait();
    drop(held);
    assert_eq!(rig.pool.status().in_use, 1);

    drop(waiting);

    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use, status.waiting), (1, 0, 0));
    let lease = rig.pool.try_acquire().unwrap().unwrap();
    assert_eq!(Lease::uses(&lease), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_passes_the_mere_right_to_open_on() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let (first, second) = (rig.wait(), rig.wait());
    // The right to open belongs to the first waiter, and nothing has been opened yet.
    Lease::discard(held);

    drop(first);
    let lease = second.await.unwrap();

    assert_eq!((Lease::id(&lease), rig.backend.calls(Call::Open)), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_leaves_its_open_to_the_next() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Slow(50 * MS));
    let (first, second) = (rig.wait(), rig.wait());
    advance(10 * MS).await;

    drop(first);
    let lease = second.await.unwrap();

    assert_eq!((Lease::id(&lease), rig.backend.calls(Call::Open)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_cancelled_in_the_middle_leaves_the_order_as_it_was() {
    let rig = Rig::with_max_size(1);
    let mut held = rig.acquire().await;
    let mut line: Vec<_> = (0..7).map(|_| Some(rig.wait())).collect();

    for gone in [3, 0, 6] {
        line[gone] = None;
    }
    assert_eq!(rig.pool.status().waiting, 4);

    for nth in [1, 2, 4, 5] {
        drop(held);
        for waiting in line.iter_mut().skip(nth + 1).flatten() {
            assert!(!waiting.is_served());
        }
        held = line[nth].take().unwrap().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_timed_out_is_passed_over() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let hasty = tokio::spawn({
        let pool = rig.pool.clone();
        async move { pool.acquire_within(10 * MS).await.map(drop) }
    });
    settle().await;
    let patient = rig.wait();

    advance(11 * MS).await;
    assert!(matches!(
        hasty.await.unwrap(),
        Err(AcquireError::TimedOut(_))
    ));
    drop(held);

    assert_eq!(Lease::id(&patient.await.unwrap()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_timed_out_leaves_its_open_to_the_next() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Slow(50 * MS));
    let (hasty, patient) = tokio::join!(
        rig.pool.acquire_within(10 * MS),
        rig.pool.acquire_within(60 * MS)
    );

    assert!(matches!(hasty, Err(AcquireError::TimedOut(_))));
    assert_eq!(Lease::id(&patient.unwrap()), 1);
    assert_eq!(rig.backend.calls(Call::Open), 1);
}

#[tokio::test(start_paused = true)]
async fn an_acquire_dropped_at_any_poll_loses_nothing() {
    let rig = Rig::with_max_size(2);
    for gate in [Gate::Pass, Gate::Slow(5 * MS), Gate::Fail, Gate::Panic] {
        for call in [Call::Open, Call::Check] {
            for polls in 0..6 {
                rig.backend.once(call, gate);
                drop(cut(polls, rig.pool.acquire()).await);
                rig.pool.invalidate();
                drop(cut(polls, rig.pool.acquire()).await);
                advance(6 * SECOND).await;
            }
        }
    }

    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_greedy_task_gets_no_more_than_its_share() {
    let rig = Rig::with_max_size(1);
    let counts: Vec<_> = (0..5).map(|_| Arc::new(AtomicUsize::new(0))).collect();
    let mut tasks = Vec::new();
    for (nth, count) in counts.iter().enumerate() {
        let (pool, count) = (rig.pool.clone(), Arc::clone(count));
        tasks.push(tokio::spawn(async move {
            loop {
                let lease = pool.acquire().await.unwrap();
                tokio::time::sleep(10 * MS).await;
                count.fetch_add(1, Ordering::Relaxed);
                drop(lease);
                // The first task is greedy: it asks again at once.
                if nth > 0 {
                    tokio::time::sleep(MS).await;
                }
            }
        }));
    }

    tokio::time::sleep(10 * SECOND).await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);

    let counts: Vec<_> = counts.iter().map(|c| c.load(Ordering::Relaxed)).collect();
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(*least > 100, "{counts:?}");
    assert!(most - least <= 2, "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn two_looping_tasks_on_one_resource_alternate_strictly() {
    let rig = Rig::with_max_size(1);
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    for name in ["one", "two"] {
        let (pool, told) = (rig.pool.clone(), told.clone());
        tokio::spawn(async move {
            for _ in 0..100 {
                let lease = pool.acquire().await.unwrap();
                told.send(name).unwrap();
                tokio::task::yield_now().await;
                drop(lease);
            }
        });
    }
    drop(told);

    let mut turns = Vec::new();
    heard.recv_many(&mut turns, 500).await;
    while heard.recv_many(&mut turns, 500).await > 0 {}

    assert_eq!(turns.len(), 200);
    assert!(turns.windows(2).all(|pair| pair[0] != pair[1]), "{turns:?}");
}

#[tokio::test(start_paused = true)]
async fn more_than_max_waiters_are_rejected_at_once() {
    let rig = Rig::new(|pool| pool.max_size(1).max_waiters(2));
    let held = rig.acquire().await;
    let (first, second) = (rig.wait(), rig.wait());

    let told = cut(1, rig.pool.acquire()).await.unwrap();

    assert!(matches!(
        told,
        Err(AcquireError::Rejected { waiting: 2, .. })
    ));
    assert!(told.unwrap_err().is_retryable());
    drop(first);
    let third = rig.wait();
    drop(held);
    drop(second.await.unwrap());
    assert!(third.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn max_waiters_zero_lends_free_resources_and_rejects_the_rest() {
    let rig = Rig::new(|pool| pool.max_size(1).min_size(1).max_waiters(0));
    rig.pool.warm().await.unwrap();

    let held = rig.pool.acquire().await.unwrap();
    let told = rig.pool.acquire().await;

    assert!(matches!(told, Err(AcquireError::Rejected { .. })));
    drop(held);
    assert!(rig.pool.acquire().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn max_waiters_rejects_no_caller_while_there_is_room() {
    let rig = Rig::new(|pool| pool.max_size(4).max_waiters(1));
    rig.backend.always(Call::Open, Gate::Slow(10 * MS));

    let burst = tokio::join!(
        rig.pool.acquire(),
        rig.pool.acquire(),
        rig.pool.acquire(),
        rig.pool.acquire()
    );

    assert!(burst.0.is_ok() && burst.1.is_ok() && burst.2.is_ok() && burst.3.is_ok());
}
