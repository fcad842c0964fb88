//! Defects of Async\Pool that were fixed there, none of which happens here.
//!
//! Three of its fixed defects cannot be written in Rust: a reference of the caller that was
//! released once too often (a lease is moved, never copied), a dangling error that was passed to
//! the strategy, and a crash in the struct of the callback of the health check.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cenote::{AcquireError, Lease, Pool, WeakPool};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, GatedManager, GatedPool, Rig, Thing};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Async\Pool #141: a broken return freed only capacity, no resource, and no waiter was woken for
/// it.
#[tokio::test(start_paused = true)]
async fn a_broken_return_freed_only_capacity_and_its_waiters_slept_on() {
    let rig = Rig::with_max_size(1);
    let mut lease = rig.acquire().await;
    let (first, second) = (rig.wait(), rig.wait());

    lease.broken = true;
    drop(lease);

    let served = timeout(Duration::from_secs(1), first).await;
    assert_eq!(served.expect("deadlock").unwrap().serial, 2);
    assert!(second.await.is_ok());
    rig.assert_full_service().await;
}

/// Async\Pool #141: when every create failed, the first caller was told and the others waited for
/// ever.
#[tokio::test(start_paused = true)]
async fn a_create_that_always_failed_left_all_but_the_first_waiting() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    rig.backend.always(Call::Open, Gate::Fail);
    let waiters: Vec<_> = (0..5).map(|_| rig.wait()).collect();

    Lease::discard(held);

    for waiter in waiters {
        let told = timeout(Duration::from_secs(1), waiter).await;
        let told = told.expect("deadlock");
        assert!(matches!(told, Err(AcquireError::Open { .. })));
    }
    rig.assert_full_service().await;
}

/// Async\Pool #235/#236: a task that returned and asked again overtook the waiters, which starved
/// in a convoy.
#[tokio::test(start_paused = true)]
async fn two_looping_tasks_did_not_take_turns() {
    let rig = Rig::with_max_size(1);
    let turns = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for name in 0..2 {
        let (pool, turns) = (rig.pool.clone(), Arc::clone(&turns));
        tasks.spawn(async move {
            for _ in 0..20 {
                let lease = pool.acquire().await.unwrap();
                turns.lock().unwrap().push(name);
                tokio::task::yield_now().await;
                drop(lease);
            }
        });
    }

    tasks.join_all().await;

    let turns = turns.lock().unwrap();
    assert!(turns.windows(2).all(|two| two[0] != two[1]), "{turns:?}");
}

/// Async\Pool #235/#236: a waiter that was cancelled after its wake-up took the wake-up with it.
#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_took_its_wake_up_with_it() {
    for granted_first in [true, false] {
        let rig = Rig::with_max_size(1);
        let held = rig.acquire().await;
        let (first, second) = (rig.wait(), rig.wait());

        if granted_first {
            drop(held);
            drop(first);
        } else {
            drop(first);
            drop(held);
        }

        assert_eq!(second.await.unwrap().serial, 1);
        assert_eq!(rig.pool.status().opened, 1);
    }
}

/// Async\Pool #235/#236: a waiter that left from the middle of the queue disturbed its order.
#[tokio::test(start_paused = true)]
async fn a_waiter_that_left_the_middle_disturbed_the_order() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut waiters: Vec<_> = (0..6).map(|_| rig.wait()).collect();

    drop(waiters.remove(4));
    drop(waiters.remove(1));
    let mut lease = held;
    for nth in 0..waiters.len() {
        drop(lease);
        let served: Vec<_> = waiters.iter_mut().map(|one| one.is_served()).collect();
        let first_only: Vec<_> = (0..served.len()).map(|seat| seat == 0).collect();
        assert_eq!(served, first_only, "round {nth}");
        lease = waiters.remove(0).await.unwrap();
    }

    drop(lease);
    rig.assert_full_service().await;
}

/// Async\Pool #235/#236: as long as a caller waited, no other could have an idle resource that was
/// not needed for it.
#[tokio::test(start_paused = true)]
async fn surplus_was_blocked_while_a_caller_waited() {
    let rig = Rig::with_max_size(2);
    let held = [rig.acquire().await, rig.acquire().await];
    let waiter = rig.wait();

    drop(held);
    let surplus = rig.pool.try_acquire().unwrap();
    let stolen = rig.pool.try_acquire().unwrap();

    assert!(surplus.is_some(), "one is the waiter's, one is free");
    assert!(stolen.is_none(), "what the waiter was granted was taken");
    assert!(waiter.await.is_ok());
}

/// Async\Pool: while a create was suspended its slot was not counted, and others created beyond the
/// maximum.
#[tokio::test(start_paused = true)]
async fn more_than_the_maximum_were_opened_while_an_open_took_its_time() {
    let rig = Rig::with_max_size(3);
    rig.backend
        .always(Call::Open, Gate::Slow(Duration::from_millis(50)));
    let mut callers = JoinSet::new();
    for _ in 0..20 {
        let pool = rig.pool.clone();
        callers.spawn(async move {
            let _lease = pool.acquire().await.unwrap();
            sleep(Duration::from_millis(20)).await;
        });
    }

    callers.join_all().await;

    assert_eq!((rig.backend.peak(), rig.backend.calls(Call::Open)), (3, 3));
    rig.assert_full_service().await;
}

/// Async\Pool: a failed factory fell through to the wait for a return, and freed memory that was
/// still in use there.
#[tokio::test(start_paused = true)]
async fn a_failed_factory_fell_through_to_the_wait() {
    let rig = Rig::with_max_size(2);
    let held = rig.acquire().await;
    rig.backend.once(Call::Open, Gate::Fail);

    let told = timeout(Duration::from_millis(1), rig.pool.acquire()).await;

    let told = told.expect("it waited for a return");
    assert!(matches!(told, Err(AcquireError::Open { .. })));
    let status = rig.pool.status();
    assert_eq!((status.waiting, status.in_use, status.total), (0, 1, 1));
    drop(held);
    rig.assert_full_service().await;
}

/// Async\Pool #212: a resource in a suspended hook was counted nowhere.
#[tokio::test(start_paused = true)]
async fn a_resource_in_a_hook_was_counted_nowhere() {
    let slow = Gate::Slow(Duration::from_millis(50));
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .before_acquire(async |thing: &mut Thing| thing.pass(Call::BeforeAcquire).await)
            .before_release(async |thing: &mut Thing| thing.pass(Call::BeforeRelease).await)
    });
    rig.backend.always(Call::BeforeAcquire, slow);
    rig.backend.always(Call::BeforeRelease, slow);

    drop(rig.acquire().await);
    settle().await;
    let returning = rig.pool.status();
    sleep(Duration::from_millis(60)).await;
    let waiter = rig.wait();
    settle().await;
    let lending = rig.pool.status();

    assert_eq!((returning.cleaning, returning.total), (1, 1));
    assert_eq!((lending.checking, lending.total), (1, 1));
    assert!(waiter.await.is_ok());
    assert_eq!(rig.backend.peak(), 1);
    rig.assert_full_service().await;
}

/// Async\Pool, server#93: the timer of the health check kept the event loop alive after its pool
/// was gone. And #125: the callables of the pool were never freed.
#[tokio::test(start_paused = true)]
async fn the_healthcheck_outlived_its_pool_and_kept_it_alive() {
    // The first pool of a runtime leaves one small task there, once.
    drop(Rig::with_max_size(1).acquire().await);
    settle().await;
    let before = Handle::current().metrics().num_alive_tasks();
    let rig = Rig::new(|pool| {
        pool.max_size(2)
            .min_size(2)
            .heartbeat_interval(Duration::from_secs(1))
    });
    drop(rig.acquire().await);
    advance(Duration::from_secs(3)).await;
    let Rig {
        pool,
        backend,
        recorder,
    } = rig;

    drop(pool);
    settle().await;

    assert_eq!(Handle::current().metrics().num_alive_tasks(), before);
    assert_eq!((Arc::strong_count(&backend), backend.alive()), (1, 0));
    assert_eq!(Arc::strong_count(&recorder), 1);
}

/// Async\Pool #125: a callable that knew its pool was a reference cycle that was never collected.
/// Here it knows the pool by a weak handle.
#[tokio::test(start_paused = true)]
async fn a_factory_that_knew_its_pool_kept_it_for_ever() {
    type Known = Arc<Mutex<Option<WeakPool<cenote::Closures<()>>>>>;
    let known = Known::default();
    let knows = Arc::clone(&known);
    let pool = Pool::from_fn(move || {
        let idle = knows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .and_then(WeakPool::upgrade)
            .map(|pool| pool.status().idle);
        async move { idle.map(|_| ()).ok_or("the pool is gone") }
    })
    .build()
    .unwrap();
    *known.lock().unwrap() = Some(pool.downgrade());
    drop(pool.acquire().await.unwrap());

    drop(pool);
    settle().await;

    let weak = known.lock().unwrap().take();
    assert!(weak.unwrap().upgrade().is_none());
    assert_eq!(Arc::strong_count(&known), 1, "the factory was not dropped");
}

/// Closes its pool when it is dropped, also by a panic.
struct Closer(GatedPool);

impl Drop for Closer {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Async\Pool: a pool that was closed while an exception was thrown lost the exception.
#[tokio::test(start_paused = true)]
async fn a_close_stole_the_panic_in_flight() {
    let rig = Rig::with_max_size(2);
    let lease: Lease<GatedManager> = rig.acquire().await;
    drop(rig.acquire().await);
    for call in [Call::Close, Call::IsBroken] {
        rig.backend.always(call, Gate::Panic);
    }
    let closer = Closer(rig.pool.clone());

    let task = tokio::spawn(async move {
        let _held = (closer, lease);
        panic_any("the panic in flight");
    });

    let panicked = task.await.unwrap_err().into_panic();
    assert_eq!(panicked.downcast_ref(), Some(&"the panic in flight"));
    settle().await;
    assert_eq!((rig.pool.status().total, rig.pool.status().closing), (0, 0));
    assert_eq!(rig.backend.alive(), 0);
}

/// Async\Pool: the errors of a destructor were swallowed.
#[tokio::test(start_paused = true)]
async fn the_failure_of_a_close_was_swallowed() {
    for (gate, said) in [
        (Gate::Panic, "panicked: the backend panicked in Close"),
        (Gate::Hang, "took longer than 5.0s"),
    ] {
        let rig = Rig::with_max_size(1);
        rig.backend.once(Call::Close, gate);

        Lease::discard(rig.acquire().await);
        advance(Duration::from_secs(6)).await;

        let told = format!("callback_failed 1 Close {said}");
        assert_eq!(rig.recorder.of("callback_failed"), [told]);
    }
}
