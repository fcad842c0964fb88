//! The lease ends well wherever it ends: in another thread, without a runtime, while panicking,
//! after the pool, or never.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cenote::{Lease, Pool};
use cenote_testkit::clock::{advance, eventually, settle};
use cenote_testkit::{Backend, Call, Gate, GatedManager, Rig};

use crate::support::runtimes::single;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[expect(
    clippy::mem_forget,
    reason = "what a leaking caller does is what is tested"
)]
fn forget<T>(value: T) {
    std::mem::forget(value);
}

#[tokio::test(start_paused = true)]
async fn a_lease_dropped_in_a_thread_without_a_runtime_comes_back() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;

    thread::spawn(move || drop(lease)).join().unwrap();

    assert_eq!(rig.pool.status().idle, 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_dirty_lease_dropped_in_a_thread_without_a_runtime_is_cleaned() {
    let rig = Rig::with_max_size(1);
    let mut lease = rig.acquire().await;
    lease.dirty = true;

    thread::spawn(move || drop(lease)).join().unwrap();
    assert_eq!(rig.pool.status().cleaning, 1);
    settle().await;

    assert_eq!((rig.pool.status().idle, rig.pool.status().cleaning), (1, 0));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_discarded_in_a_thread_without_a_runtime_is_closed_and_its_room_used() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;
    let waiting = rig.wait();

    thread::spawn(move || Lease::discard(lease)).join().unwrap();

    assert_eq!(waiting.await.unwrap().serial, 2);
}

#[tokio::test(start_paused = true)]
async fn a_release_dropped_in_a_thread_without_a_runtime_is_finished() {
    let rig = Rig::with_max_size(1);
    let mut lease = rig.acquire().await;
    lease.dirty = true;

    thread::spawn(move || drop(Lease::release(lease)))
        .join()
        .unwrap();
    settle().await;

    assert_eq!(rig.backend.calls(Call::Clean), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_dropped_by_a_panic_comes_back() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;

    let task = tokio::spawn(async move {
        let _lease = lease;
        panic!("while it is held");
    });

    let ended: Result<(), _> = task.await;
    assert!(ended.unwrap_err().is_panic());
    assert_eq!(rig.pool.status().idle, 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_dropped_by_a_panic_survives_that_its_manager_panics_too() {
    for call in [Call::IsBroken, Call::NeedsCleaning] {
        let rig = Rig::with_max_size(1);
        let lease = rig.acquire().await;
        rig.backend.once(call, Gate::Panic);

        let task = thread::spawn(move || {
            let _lease = lease;
            panic!("while it is held");
        });
        let ended: thread::Result<()> = task.join();
        settle().await;

        assert!(ended.is_err());
        assert_eq!(rig.pool.status().closes.total(), 1, "{call:?}");
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_outlives_the_pool_is_closed_when_it_ends() {
    let Rig { pool, backend, .. } = Rig::with_max_size(2);
    let (lease, other) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    drop(other);

    drop(pool);
    settle().await;
    assert_eq!(backend.alive(), 1, "what was idle is closed");
    assert_eq!(lease.serial, 1, "what is out goes on");
    drop(lease);
    settle().await;

    assert_eq!((backend.calls(Call::Close), backend.alive()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn an_awaited_release_to_a_pool_that_is_gone_closes_the_resource() {
    let Rig { pool, backend, .. } = Rig::with_max_size(1);
    let lease = pool.acquire().await.unwrap();
    drop(pool);

    Lease::release(lease).await;

    assert_eq!((backend.calls(Call::Close), backend.alive()), (1, 0));
}

#[test]
fn a_lease_that_outlives_the_pool_without_a_runtime_is_closed() {
    let Rig { pool, backend, .. } = Rig::with_max_size(1);
    let lease = pool.acquire_blocking().unwrap();

    drop(pool);
    drop(lease);

    eventually("it is closed", || {
        backend.calls(Call::Close) == 1 && backend.alive() == 0
    });
}

#[test]
fn a_lease_that_outlives_the_pool_and_its_runtime_is_dropped() {
    let Rig { pool, backend, .. } = Rig::with_max_size(1);
    let runtime = single();
    let lease = runtime.block_on(pool.acquire()).unwrap();

    drop(runtime);
    drop(pool);
    drop(lease);

    assert_eq!(backend.alive(), 0);
}

#[test]
fn a_lease_dropped_without_any_runtime_serves_the_next() {
    let rig = Rig::with_max_size(1);

    for _ in 0..3 {
        let mut lease = rig.pool.acquire_blocking().unwrap();
        lease.dirty = true;
    }
    let lease = rig.pool.acquire_blocking().unwrap();

    assert_eq!((Lease::uses(&lease), lease.dirty), (4, false));
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_lease_stays_counted_and_is_named() {
    let rig = Rig::with_max_size(2);
    let lease = rig.acquire().await;
    Lease::label(&lease, "the lost one");
    let site = Lease::site(&lease);

    forget(lease);
    advance(60 * SECOND).await;

    let status = rig.pool.status();
    assert_eq!((status.in_use, status.total, status.leaked), (1, 1, 1));
    let out = rig.pool.leases();
    assert_eq!((out.len(), out[0].id, out[0].site), (1, 1, site));
    assert_eq!(out[0].held_for, 60 * SECOND);
    assert_eq!(out[0].label.as_deref(), Some("the lost one"));
    assert_eq!(rig.recorder.of("leaked").len(), 1);
    let _other = rig.acquire().await;
    assert!(rig.pool.acquire_within(MS).await.is_err());
}

#[test]
fn leases_that_outlive_the_pool_end_in_any_order_and_thread() {
    let backend = Arc::new(Backend::default());
    let pool = Pool::builder(GatedManager(Arc::clone(&backend)))
        .max_size(3)
        .build()
        .unwrap();
    let kept: Vec<_> = (0..3).map(|_| pool.acquire_blocking().unwrap()).collect();
    let weak = pool.downgrade();

    drop(pool);
    assert!(weak.upgrade().is_none());
    for lease in kept.into_iter().rev() {
        thread::spawn(move || drop(lease)).join().unwrap();
    }

    eventually("all are closed", || backend.alive() == 0);
    eventually("each by its manager", || backend.calls(Call::Close) == 3);
}
