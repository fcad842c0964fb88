//! Any future of the pool may be dropped at any await: its grant goes to the next waiter, and no
//! caller waits for ever.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use cenote::Lease;
use cenote_testkit::clock::settle;
use cenote_testkit::{Call, Gate, Rig};
use tokio::time::{sleep, timeout};

use crate::support::runtimes::{single, with_workers};

/// Longer than any test here takes, on any machine.
const LONG: Duration = Duration::from_secs(60);

/// Counts its wake-ups.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_dropped_between_granted_and_woken_hands_its_resource_on() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let bells: Vec<_> = (0..3).map(|_| Arc::new(Bell::default())).collect();
    let mut waiting: Vec<_> = bells
        .iter()
        .map(|bell| {
            let mut acquiring = Box::pin(rig.pool.acquire());
            let waker = Waker::from(Arc::clone(bell));
            assert!(
                acquiring
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            acquiring
        })
        .collect();
    let woken = || {
        bells
            .iter()
            .map(|bell| bell.0.load(Ordering::Relaxed))
            .collect::<Vec<_>>()
    };

    drop(held);
    assert_eq!(woken(), [1, 0, 0]);
    drop(waiting.remove(0));
    assert_eq!(woken(), [1, 1, 0]);
    drop(waiting.remove(0));

    assert_eq!(woken(), [1, 1, 1]);
    let lease = waiting.remove(0).await.unwrap();
    assert_eq!((lease.serial, rig.pool.status().cancelled), (1, 2));
    drop(lease);
    drop(waiting);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_waiter_dropped_between_granted_and_woken_leaves_its_resource_idle() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiter = rig.wait();

    drop(held);
    assert_eq!((rig.pool.status().idle, rig.pool.status().in_use), (0, 1));
    drop(waiter);

    assert_eq!((rig.pool.status().idle, rig.pool.status().in_use), (1, 0));
    assert!(rig.pool.try_acquire().unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_losers_of_a_select_over_several_acquires_give_their_grants_back() {
    let rig = Rig::with_max_size(2);
    let held = [rig.acquire().await, rig.acquire().await];
    let releasing = async {
        tokio::task::yield_now().await;
        drop(held);
        std::future::pending::<()>().await;
    };

    let won = tokio::select! {
        won = rig.pool.acquire() => won,
        won = rig.pool.acquire() => won,
        won = rig.pool.acquire() => won,
        () = releasing => unreachable!("it never ends"),
    };

    let status = rig.pool.status();
    assert_eq!((status.in_use, status.idle, status.waiting), (1, 1, 0));
    drop(won);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_join_over_more_acquires_than_slots_is_served_in_order_within_one_task() {
    let rig = Rig::with_max_size(1);
    let served = std::sync::Mutex::new(Vec::new());
    let turn = async |name: u32| {
        let lease = rig.acquire().await;
        served.lock().unwrap().push(name);
        tokio::task::yield_now().await;
        drop(lease);
    };

    tokio::join!(turn(1), turn(2), turn(3), turn(4), turn(5));

    assert_eq!(served.into_inner().unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(rig.pool.status().opened, 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_never_polled_takes_no_place_in_the_queue() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;

    let never = rig.pool.acquire();
    let waiter = rig.wait();
    drop(held);

    assert_eq!(
        rig.pool.status().waited,
        2,
        "the first acquire and the waiter"
    );
    assert!(waiter.await.is_ok());
    drop(never);
    assert_eq!(rig.pool.status().cancelled, 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_no_longer_polled_holds_up_only_itself() {
    let rig = Rig::with_max_size(2);
    let held = [rig.acquire().await, rig.acquire().await];
    let forgotten = rig.wait();
    let pool = rig.pool.clone();
    let other = tokio::spawn(async move { pool.acquire().await.is_ok() });
    settle().await;

    for lease in held {
        Lease::discard(lease);
    }

    let served = timeout(Duration::from_secs(1), other).await;
    assert!(served.expect("held up by another waiter").unwrap());
    drop(forgotten);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_moves_to_another_task_is_woken_there() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiter = rig.wait();

    let elsewhere = tokio::spawn(waiter);
    settle().await;
    drop(held);

    assert!(elsewhere.await.unwrap().is_ok());
}

#[test]
fn a_runtime_dropped_with_hundreds_of_waiters_leaves_a_pool_that_serves_the_next_runtime() {
    let rig = Arc::new(Rig::with_max_size(8));
    let first = with_workers(2);
    first.block_on(async {
        for _ in 0..400 {
            let rig = Arc::clone(&rig);
            tokio::spawn(async move {
                let _lease = rig.pool.acquire_within(None).await.unwrap();
                std::future::pending::<()>().await;
            });
        }
        while rig.pool.status().waiting < 400 - 8 {
            sleep(Duration::from_millis(1)).await;
        }
    });

    drop(first);

    let status = rig.pool.status();
    assert_eq!((status.in_use, status.waiting), (0, 0), "{status:#?}");
    let second = single();
    second.block_on(async {
        let served = timeout(LONG, rig.assert_full_service());
        served.await.expect("the pool is stuck");
    });
}

#[test]
fn a_runtime_dropped_in_the_middle_of_an_open_does_not_strand_a_waiter_elsewhere() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Hang);
    let first = single();
    let gave_up = first.block_on(async {
        let limit = Duration::from_millis(5);
        timeout(limit, rig.pool.acquire()).await
    });
    assert!(gave_up.is_err() && rig.pool.status().opening == 1);
    let second = single();

    let served = second.block_on(async {
        let mut waiting = pin!(rig.pool.acquire_within(LONG));
        let mut first = Some(first);
        std::future::poll_fn(|context| {
            let poll = waiting.as_mut().poll(context);
            if poll.is_pending() {
                if let Some(first) = first.take() {
                    first.shutdown_background();
                }
            }
            poll
        })
        .await
    });

    assert!(served.is_ok());
}
