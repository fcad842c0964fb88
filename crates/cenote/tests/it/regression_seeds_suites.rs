//! What the suites of other pools check although their documents do not say it, as far as it is about the
//! pool.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::{AcquireError, BreakerState, Lease, Reason, WarmUp};
use cenote_testkit::clock::{advance, eventually, settle};
use cenote_testkit::{Call, Gate, Rig, Thing};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// AP.
#[tokio::test(start_paused = true)]
async fn a_fresh_resource_is_not_asked_about() {
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .before_acquire(async |thing: &mut Thing| thing.pass(Call::BeforeAcquire).await)
    });
    rig.backend.always(Call::BeforeAcquire, Gate::Fail);

    drop(rig.acquire().await);
    assert_eq!(rig.backend.calls(Call::BeforeAcquire), 0);
    let second = rig.acquire().await;

    assert_eq!(rig.backend.calls(Call::BeforeAcquire), 1);
    assert_eq!(second.serial, 2);
}

/// AP.
#[tokio::test(start_paused = true)]
async fn a_warm_up_that_fails_midway_has_opened_exactly_what_it_says() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(3).max_opening(1));
    rig.backend.once(Call::Open, Gate::Pass);
    rig.backend.once(Call::Open, Gate::Fail);

    let warmed = rig.pool.warm().await;

    assert!(warmed.is_err());
    let status = rig.pool.status();
    assert_eq!((status.opened, status.open_failed), (1, 1));
    assert_eq!(rig.backend.calls(Call::Open), 2);
    rig.assert_full_service().await;
}

/// S1: all connects of the start fail; the pool is empty, and serves later.
#[tokio::test(start_paused = true)]
async fn a_warm_up_in_which_everything_fails_leaves_an_empty_pool_that_serves_later() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(3).warm_up(WarmUp::BestEffort));
    rig.backend.always(Call::Open, Gate::Fail);

    let warmed = rig.pool.warm().await;
    settle().await;

    assert!(warmed.is_ok());
    assert_eq!(rig.pool.status().total, 0);
    rig.assert_full_service().await;
}

/// AP.
#[tokio::test(start_paused = true)]
async fn six_waiters_are_served_in_the_order_of_their_arrival_for_three_rounds() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = JoinSet::new();
    for name in 0..6 {
        let (pool, served) = (rig.pool.clone(), Arc::clone(&served));
        waiters.spawn(async move {
            for _ in 0..3 {
                let lease = pool.acquire().await.unwrap();
                served.lock().unwrap().push(name);
                sleep(Duration::from_millis(1)).await;
                drop(lease);
            }
        });
    }
    settle().await;

    drop(held);
    waiters.join_all().await;

    let expected: Vec<_> = (0..3).flat_map(|_| 0..6).collect();
    assert_eq!(*served.lock().unwrap(), expected);
}

/// AP: a cancelled waiter hands on a resource; here the mere right to open one.
#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_hands_on_mere_capacity() {
    let rig = Rig::with_max_size(1);
    rig.backend
        .once(Call::Close, Gate::Slow(Duration::from_millis(10)));
    let held = rig.acquire().await;
    let (first, second) = (rig.wait(), rig.wait());

    Lease::discard(held);
    settle().await;
    drop(first);

    assert_eq!(second.await.unwrap().serial, 2);
    assert_eq!(rig.backend.calls(Call::Open), 2);
    rig.assert_full_service().await;
}

/// AP: or leaves it reusable, where nobody else waits.
#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_leaves_capacity_for_the_next_who_comes() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiter = rig.wait();

    Lease::discard(held);
    drop(waiter);
    settle().await;

    assert_eq!(rig.pool.status().waiting, 0);
    rig.assert_full_service().await;
}

/// AP.
#[tokio::test(start_paused = true)]
async fn a_close_while_something_is_granted_and_not_taken_closes_it_exactly_once() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiter = rig.wait();
    drop(held);

    rig.pool.close();
    let told = waiter.await;
    settle().await;

    assert!(matches!(told, Err(AcquireError::Closed { .. })));
    assert_eq!(
        (rig.backend.calls(Call::Close), rig.backend.alive()),
        (1, 0)
    );
    assert_eq!(rig.recorder.of("closed"), ["closed 1 pool_closed"]);
}

/// AP.
#[tokio::test(start_paused = true)]
async fn a_deactivation_while_something_is_granted_and_not_taken_turns_both_waiters_away() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let (granted, waiting) = (rig.wait(), rig.wait());
    drop(held);

    rig.pool.deactivate();

    for waiter in [granted, waiting] {
        let told = waiter.await;
        assert!(matches!(told, Err(AcquireError::Unavailable { .. })));
    }
    assert_eq!((rig.pool.status().idle, rig.pool.status().in_use), (1, 0));
    rig.pool.activate();
    assert_eq!(rig.pool.breaker_state(), BreakerState::Active);
    rig.assert_full_service().await;
}

/// AP: its ring of waiters had to grow while it was turned.
#[tokio::test(start_paused = true)]
async fn a_line_that_grows_while_it_moves_stays_in_order() {
    let rig = Rig::with_max_size(1);
    let mut lease = rig.acquire().await;
    let mut line: std::collections::VecDeque<_> = (0..7).map(|_| rig.wait()).collect();

    for round in 0..100 {
        drop(lease);
        let mut first = line.pop_front().unwrap();
        assert!(first.is_served(), "round {round}");
        lease = first.await.unwrap();
        line.extend([rig.wait(), rig.wait()]);
    }

    assert_eq!(rig.pool.status().waiting, 107);
    drop((lease, line));
    rig.assert_full_service().await;
}

/// AP, chaos: at every sample all are accounted for.
#[tokio::test(start_paused = true)]
async fn every_sample_accounts_for_every_resource() {
    let rig = Arc::new(Rig::new(|pool| {
        pool.max_size(3).check_after_idle(Duration::ZERO)
    }));
    for call in [Call::Open, Call::Check, Call::Clean, Call::Close] {
        rig.backend
            .always(call, Gate::Slow(Duration::from_millis(3)));
    }
    let mut tasks = JoinSet::new();
    for task in 0..10 {
        let rig = Arc::clone(&rig);
        tasks.spawn(async move {
            for round in 0..20 {
                let mut lease = rig.acquire().await;
                lease.dirty = (task + round) % 3 == 0;
                lease.broken = (task + round) % 7 == 0;
                sleep(Duration::from_millis(2)).await;
            }
        });
    }

    while !tasks.is_empty() {
        let status = rig.pool.status();
        let counted =
            status.idle + status.in_use + status.opening + status.cleaning + status.checking;
        assert_eq!(status.total, counted, "{status:#?}");
        assert!(status.total + status.closing <= 3, "{status:#?}");
        assert!(rig.backend.alive() <= 3);
        let _ = timeout(Duration::from_millis(1), tasks.join_next()).await;
    }

    assert_eq!(rig.pool.status().acquired, 200);
    assert_eq!(rig.pool.status().released, 200);
    rig.assert_full_service().await;
}

/// S1.
#[tokio::test(start_paused = true)]
async fn a_return_after_the_close_closes_the_resource() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;

    rig.pool.close();
    assert_eq!(rig.pool.status().total, 1);
    drop(lease);
    settle().await;

    assert_eq!((rig.pool.status().total, rig.backend.alive()), (0, 0));
    assert_eq!(rig.pool.status().closed.by(Reason::PoolClosed), 1);
}

/// S1: a close outside a coroutine crashed.
#[test]
fn a_close_outside_a_runtime_closes_what_is_idle() {
    let rig = Rig::with_max_size(1);
    drop(rig.pool.acquire_blocking().unwrap());

    rig.pool.close();

    assert!(rig.pool.is_closed());
    let refused = rig.pool.acquire_blocking();
    assert!(matches!(refused, Err(AcquireError::Closed { .. })));
    assert_eq!(rig.pool.status().idle, 0);
    let Rig { pool, backend, .. } = rig;
    drop(pool);
    eventually("it is closed", || backend.alive() == 0);
}

/// S1.
#[tokio::test(start_paused = true)]
async fn the_heartbeat_replaces_all_that_died_and_returns_to_the_minimum() {
    let rig = Rig::new(|pool| {
        pool.max_size(4)
            .min_size(3)
            .heartbeat_interval(Duration::from_secs(10))
    });
    rig.pool.warm().await.unwrap();
    for _ in 0..3 {
        rig.backend.once(Call::Check, Gate::Fail);
    }

    advance(Duration::from_secs(10)).await;
    sleep(Duration::from_secs(1)).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.total, status.opened), (3, 3, 6));
    assert_eq!(status.closed.by(Reason::FailedCheck), 3);
    rig.assert_full_service().await;
}

/// S1.
#[tokio::test(start_paused = true)]
async fn a_dead_return_is_refilled() {
    let rig = Rig::new(|pool| pool.max_size(2).min_size(2));
    rig.pool.warm().await.unwrap();

    rig.acquire().await.broken = true;
    sleep(Duration::from_secs(1)).await;

    assert_eq!((rig.pool.status().idle, rig.pool.status().opened), (2, 3));
}

/// S1: with its timers suspended a pool keeps what it has past its time, and lends it.
#[tokio::test(start_paused = true)]
async fn paused_upkeep_evicts_nothing_and_the_pool_lends() {
    let rig = Rig::new(|pool| pool.max_size(1).idle_timeout(Duration::from_secs(10)));
    drop(rig.acquire().await);
    rig.pool.pause_upkeep();

    advance(Duration::from_secs(60)).await;

    assert_eq!(rig.pool.status().idle, 1);
    assert_eq!(rig.acquire().await.serial, 1);
    rig.pool.resume_upkeep();
    advance(Duration::from_secs(11)).await;
    assert_eq!(rig.pool.status().total, 0);
}

/// S2: in one tick what is idle for too long is evicted, and the minimum is there again.
#[tokio::test(start_paused = true)]
async fn an_eviction_never_leaves_less_than_the_minimum() {
    let rig = Rig::new(|pool| {
        pool.max_size(4)
            .min_size(2)
            .idle_timeout(Duration::from_secs(10))
    });
    let mut leases = Vec::new();
    for _ in 0..4 {
        leases.push(rig.acquire().await);
    }
    drop(leases);

    advance(Duration::from_secs(11)).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.closed.by(Reason::Idle)), (2, 2));
    assert_eq!(status.opened, 4, "nothing had to be opened for it");
}

/// S2: the next tenant receives the same resource, cleaned; and what is clean is never cleaned.
#[tokio::test(start_paused = true)]
async fn the_next_tenant_receives_the_same_resource_cleaned_and_clean_ones_are_left_alone() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    assert_eq!(rig.backend.calls(Call::Clean), 0);

    rig.acquire().await.dirty = true;
    let next = rig.acquire().await;

    assert_eq!((next.serial, next.dirty), (1, false));
    assert_eq!(rig.backend.calls(Call::Clean), 1);
}

/// S2.
#[tokio::test(start_paused = true)]
async fn two_pools_share_nothing() {
    let (one, other) = (Rig::with_max_size(1), Rig::with_max_size(1));
    let _held = one.acquire().await;
    one.pool.suspend();

    let lease = other.acquire().await;
    one.pool.close();

    assert_ne!(one.pool.name(), other.pool.name());
    assert_eq!(Lease::id(&lease), 1);
    assert!(!other.pool.is_closed());
    drop(lease);
    other.assert_full_service().await;
}
