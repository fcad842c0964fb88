//! Failures of mobc, r2d2, qp, fast_pool and sqlx that were reproduced by running them, none of
//! which happens here.

use std::thread;
use std::time::Duration;

use cenote::{AcquireError, Lease, Pool};
use cenote_testkit::clock::settle;
use cenote_testkit::{Call, Gate, Rig};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::support::runtimes::single;

const LONG: Duration = Duration::from_secs(60);

/// mobc: `max_idle_lifetime` was compared with the time of creation: 4 were made where 1 was
/// enough.
#[tokio::test(start_paused = true)]
async fn the_idle_timeout_acted_as_a_lifetime() {
    let rig = Rig::new(|pool| pool.max_size(1).idle_timeout(Duration::from_secs(3)));

    for _ in 0..20 {
        drop(rig.acquire().await);
        sleep(Duration::from_secs(1)).await;
    }

    assert_eq!(
        (rig.pool.status().opened, rig.pool.status().closes.total()),
        (1, 0)
    );
}

/// mobc: every `get` that timed out left `wait_count` one higher.
#[tokio::test(start_paused = true)]
async fn timed_out_gets_were_counted_as_waiting_for_ever() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;

    for _ in 0..10 {
        rig.pool
            .acquire_within(Duration::from_millis(10))
            .await
            .unwrap_err();
    }

    let status = rig.pool.status();
    assert_eq!((status.waiting, status.timed_out), (0, 10));
    drop(held);
    rig.assert_full_service().await;
}

/// mobc: `set_max_open_conns(8)` changed the number that was reported, and nothing else.
#[tokio::test(start_paused = true)]
async fn a_growth_was_reported_but_did_not_happen() {
    let rig = Rig::with_max_size(2);
    let leases = [rig.acquire().await, rig.acquire().await];
    let mut waiters: Vec<_> = (0..6).map(|_| rig.wait()).collect();

    rig.pool.resize(8).unwrap();
    settle().await;

    assert!(waiters.iter_mut().all(|waiter| waiter.is_served()));
    assert_eq!(
        (rig.pool.status().max_size, rig.pool.status().in_use),
        (8, 8)
    );
    drop((leases, waiters));
    rig.assert_full_service().await;
}

/// r2d2: a panic in `connect` on its own thread leaked the pending connection, and a pool of one
/// was dead.
#[test]
fn a_panic_in_open_killed_a_pool_of_one_for_threads() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Panic);

    // Upkeep may begin the open before the caller is queued. Then the caller gets the next one.
    let first = rig.pool.acquire_blocking_within(LONG);
    assert!(matches!(first, Ok(_) | Err(AcquireError::Open { .. })));
    drop(first);
    let second = rig.pool.acquire_blocking_within(LONG);

    assert_eq!(second.unwrap().serial, 1);
}

/// qp: 6 tasks on 2 slots froze after a while with both permits free, because a waker was pushed
/// without another look at the permits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_tasks_on_two_slots_froze() {
    let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(()))
        .max_size(2)
        .acquire_timeout(LONG)
        .build()
        .unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..6 {
        let pool = pool.clone();
        tasks.spawn(async move {
            for _ in 0..4_000 {
                drop(pool.acquire().await.unwrap());
            }
        });
    }

    let ended = timeout(LONG, tasks.join_all()).await;

    ended.expect("frozen");
    let status = pool.status();
    assert_eq!((status.acquired, status.released), (24_000, 24_000));
    assert_eq!((status.idle, status.waiting), (status.total, 0));
}

/// fast_pool: as long as there was room it opened a new resource although some were idle: 8 gets
/// one after another, 4 opened.
#[tokio::test(start_paused = true)]
async fn a_get_opened_a_resource_although_one_was_idle() {
    let rig = Rig::with_max_size(4);

    for _ in 0..8 {
        drop(rig.acquire().await);
        settle().await;
    }

    assert_eq!(
        (rig.pool.status().opened, rig.backend.calls(Call::Open)),
        (1, 1)
    );
}

/// fast_pool: a waiter cancelled inside `check` left the capacity free, and the next waiter asleep
/// until its timeout.
#[tokio::test(start_paused = true)]
async fn a_waiter_cancelled_inside_its_check_left_the_next_one_asleep() {
    for ends in [
        Gate::Slow(Duration::from_millis(10)),
        Gate::Hang,
        Gate::Fail,
    ] {
        let rig = Rig::new(|pool| pool.max_size(1).check_after_idle(Duration::ZERO));
        drop(rig.acquire().await);
        rig.backend.once(Call::Check, ends);
        let (first, second) = (rig.wait(), rig.wait());

        tokio::task::yield_now().await;
        drop(first);

        assert!(second.await.is_ok(), "{ends:?}");
        rig.assert_full_service().await;
    }
}

/// fast_pool: `set_timeout_wait(None)` meant zero, not for ever.
#[tokio::test(start_paused = true)]
async fn no_timeout_meant_no_wait() {
    let rig = Rig::new(|pool| pool.max_size(1).acquire_timeout(None));
    let held = rig.acquire().await;
    let (pool, other) = (rig.pool.clone(), rig.pool.clone());
    let waiters = [
        tokio::spawn(async move { pool.acquire().await.is_ok() }),
        tokio::spawn(async move { other.acquire_within(None).await.is_ok() }),
    ];

    sleep(Duration::from_secs(3600)).await;
    assert_eq!(rig.pool.status().waiting, 2);
    drop(held);

    for waiter in waiters {
        assert!(waiter.await.unwrap());
    }
}

/// sqlx: a guard that was dropped outside a runtime panicked, because its return was a task.
#[test]
fn a_lease_dropped_outside_a_runtime_panicked() {
    for dirty in [false, true] {
        let rig = Rig::with_max_size(1);
        let first = single();
        let mut lease = first.block_on(rig.acquire());
        lease.dirty = dirty;
        drop(first);

        let dropped = thread::spawn(move || drop(lease)).join();

        assert!(dropped.is_ok());
        single().block_on(async {
            let served = timeout(LONG, rig.assert_full_service());
            served.await.expect("the slot never came back");
        });
    }
}

/// sqlx: on a current-thread runtime that did not get to run its tasks, the permit of a dropped
/// guard did not come back.
#[tokio::test(start_paused = true)]
async fn a_return_needed_the_runtime_to_run() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;

    drop(lease);
    let again = rig.pool.try_acquire().unwrap();

    assert_eq!(Lease::id(&again.unwrap()), 1);
}
