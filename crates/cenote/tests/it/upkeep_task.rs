//! The upkeep task: it can be paused, survives panics of the code that it calls, and keeps nothing
//! alive.

use std::sync::Arc;
use std::time::Duration;

use cenote::event::{Leaked, Opened, Opening};
use cenote::{CloseReason, Lease, Observer};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Rig};
use tokio::runtime::Handle;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn while_paused_nothing_is_evicted_retired_checked_refilled_or_reported() {
    let rig = Rig::new(|pool| {
        pool.max_size(4)
            .idle_timeout(SECOND * 50)
            .max_lifetime(SECOND * 70)
            .heartbeat_interval(SECOND * 20)
            .leak_after(SECOND * 10)
            .min_size(3)
    });
    let (held, idle, gone) = (
        rig.acquire().await,
        rig.acquire().await,
        rig.acquire().await,
    );
    drop(idle);

    rig.pool.pause_upkeep();
    Lease::discard(gone);
    tokio::time::sleep(HOUR).await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use, status.opened), (1, 1, 3));
    assert_eq!(status.closes.total(), 1);
    assert_eq!(status.leaked, 0);
    assert_eq!(rig.backend.calls(Call::Check), 0);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn work_that_came_due_during_a_pause_is_done_as_soon_as_upkeep_resumes() {
    let rig = Rig::new(|pool| {
        pool.max_size(4)
            .idle_timeout(SECOND * 50)
            .leak_after(SECOND * 10)
            .upkeep_interval(HOUR)
    });
    let held = rig.acquire().await;
    drop(rig.acquire().await);
    rig.pool.pause_upkeep();
    advance(SECOND * 100).await;

    rig.pool.resume_upkeep();
    settle().await;

    let status = rig.pool.status();
    assert_eq!((status.closes.by(CloseReason::Idle), status.leaked), (1, 1));
    drop(held);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_upkeep_is_paused_still_lends_opens_and_closes() {
    let rig = Rig::new(|pool| pool.max_size(2).min_size(2));
    rig.pool.pause_upkeep();

    let mut lease = rig.acquire().await;
    lease.broken = true;
    drop(lease);
    settle().await;

    assert_eq!(rig.pool.status().closes.by(CloseReason::Broken), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn pausing_twice_is_pausing_once() {
    let rig = Rig::new(|pool| pool.idle_timeout(SECOND));
    drop(rig.acquire().await);
    rig.pool.pause_upkeep();
    rig.pool.pause_upkeep();

    rig.pool.resume_upkeep();
    advance(SECOND).await;

    assert_eq!(rig.pool.status().closes.by(CloseReason::Idle), 1);
}

#[tokio::test(start_paused = true)]
async fn the_upkeep_task_ends_with_the_pool_and_keeps_nothing_alive() {
    let rig = Rig::new(|pool| pool.min_size(2));
    drop(rig.acquire().await);
    settle().await;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();

    let Rig { pool, backend, .. } = rig;
    drop(pool);
    settle().await;

    assert_eq!(tasks(), before - 1);
    assert_eq!(backend.alive(), 0);
    assert_eq!(Arc::strong_count(&backend), 1, "the manager lives on");
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_was_never_used_has_no_task() {
    let before = Handle::current().metrics().num_alive_tasks();

    let rig = Rig::new(|pool| pool.min_size(2));
    settle().await;

    assert_eq!(Handle::current().metrics().num_alive_tasks(), before);
    assert_eq!(rig.backend.calls(Call::Open), 0);
}

/// Panics in every event that the upkeep raises.
struct AlwaysPanics;

impl Observer for AlwaysPanics {
    fn leaked(&self, _: &Leaked<'_>) {
        panic!("a leak");
    }

    fn opening(&self, _: &Opening<'_>) {
        panic!("an open");
    }

    fn opened(&self, _: &Opened<'_>) {
        panic!("opened");
    }

    fn closed(&self, _: &cenote::event::Closed<'_>) {
        panic!("closed");
    }
}

#[tokio::test(start_paused = true)]
async fn upkeep_survives_panicking_observers() {
    let rig = Rig::new(|pool| {
        pool.max_size(3)
            .min_size(1)
            .leak_after(SECOND)
            .idle_timeout(SECOND * 5)
            .observer(Arc::new(AlwaysPanics))
    });
    let leaked = rig.acquire().await;
    advance(SECOND).await;

    drop(rig.acquire().await);
    advance(SECOND * 5).await;
    Lease::discard(leaked);
    settle().await;
    advance(MS).await;

    let status = rig.pool.status();
    assert_eq!((status.leaked, status.closes.by(CloseReason::Idle)), (1, 1));
    assert_eq!((status.idle, status.opened), (1, 3));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_owed_work_is_done_though_the_first_waiter_is_not_polled() {
    let rig = Rig::new(|pool| pool.max_size(2).acquire_timeout(None));
    let held = (rig.acquire().await, rig.acquire().await);
    let not_polled = rig.wait();
    let pool = rig.pool.clone();
    let second = tokio::spawn(async move { pool.acquire().await.unwrap().serial });
    settle().await;

    Lease::discard(held.0);
    Lease::discard(held.1);
    advance(MS).await;

    assert!(second.is_finished(), "{:?}", rig.pool.status());
    drop(not_polled);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_only_tried_is_kept_up() {
    let rig = Rig::new(|pool| pool.min_size(1));

    let first = rig.pool.try_acquire().unwrap();
    advance(MS).await;
    let second = rig.pool.try_acquire().unwrap();

    assert!(first.is_none() && second.is_some());
}
