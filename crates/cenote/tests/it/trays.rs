//! Leases through a tray: while no caller waits the ledger is not asked, and every promise holds.

use std::sync::Arc;
use std::time::Duration;

use cenote::{AcquireError, CloseReason, Health, Lease, Pool};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Rig};

use crate::support::runtimes::{single, with_workers};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Makes one resource lie on its tray: it was opened, the upkeep has seen it, and it has been lent
/// since without a waiter.
async fn on_a_tray(rig: &Rig) {
    drop(rig.acquire().await);
    settle().await;
    for _ in 0..2 {
        drop(rig.acquire().await);
    }
}

#[tokio::test(start_paused = true)]
async fn every_trip_is_counted() {
    let rig = Rig::with_max_size(2);

    for _ in 0..10 {
        drop(rig.acquire().await);
    }
    let held = rig.acquire().await;

    assert_eq!(Lease::uses(&held), 11);
    let status = rig.pool.status();
    assert_eq!((status.acquired, status.released), (11, 10));
    assert_eq!((status.in_use, status.idle, status.total), (1, 0, 1));
    drop(held);
    let status = rig.pool.status();
    assert_eq!((status.acquired, status.released), (11, 11));
    assert_eq!((status.in_use, status.idle), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_holder_is_known_by_site_task_label_and_time() {
    let rig = Rig::with_max_size(2);
    on_a_tray(&rig).await;
    let pool = rig.pool.clone();

    let (lease, line, id) = tokio::spawn(async move {
        let lease = pool.acquire().await.unwrap();
        (lease, line!() - 1, tokio::task::id())
    })
    .await
    .unwrap();
    Lease::label(&lease, "first");
    Lease::label(&lease, "report");
    advance(7 * SECOND).await;

    let holders = rig.pool.leases();
    let [holder] = holders.as_slice() else {
        panic!("one lease is out: {holders:?}");
    };
    assert_eq!(holder.site.line(), line);
    assert_eq!(holder.label.as_deref(), Some("report"));
    assert_eq!(holder.held_for, 7 * SECOND);
    let task = holder.task.as_ref().map(ToString::to_string);
    assert!(task.is_some_and(|task| task.contains(&id.to_string())));
    drop(lease);
    assert!(rig.pool.leases().is_empty());
    assert_eq!(rig.acquire().await.serial, 1);
}

#[tokio::test(start_paused = true)]
async fn a_label_ends_with_its_lease() {
    let rig = Rig::with_max_size(1);
    on_a_tray(&rig).await;
    let lease = rig.acquire().await;
    Lease::label(&lease, "mine");
    drop(lease);

    let _next = rig.acquire().await;

    assert_eq!(rig.pool.leases()[0].label, None);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gets_the_resource_that_was_lent_by_a_tray() {
    let rig = Rig::with_max_size(1);
    on_a_tray(&rig).await;
    let held = rig.acquire().await;

    let mut first = rig.wait();
    let mut second = rig.wait();
    drop(held);

    assert!(rig.pool.try_acquire().unwrap().is_none(), "no barging");
    assert!(!second.is_served());
    assert!(first.is_served());
    drop(first);
    assert!(second.is_served());
}

#[tokio::test(start_paused = true)]
async fn a_leak_is_reported_when_it_is_due() {
    let rig = Rig::new(|pool| pool.max_size(2).leak_after(30 * SECOND));
    on_a_tray(&rig).await;
    advance(3 * SECOND).await;

    let lease = rig.acquire().await;
    advance(30 * SECOND - MS).await;
    assert_eq!(rig.recorder.of("leaked").len(), 0);
    advance(MS).await;
    assert_eq!(rig.recorder.of("leaked").len(), 1);

    drop(lease);
    assert_eq!(rig.recorder.of("returned_late").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unused_resource_is_evicted_when_it_is_due() {
    let rig = Rig::new(|pool| pool.max_size(2).idle_timeout(60 * SECOND));
    on_a_tray(&rig).await;
    advance(2 * SECOND).await;
    drop(rig.acquire().await);

    advance(60 * SECOND - MS).await;
    assert_eq!(rig.backend.alive(), 1);
    advance(MS).await;
    assert_eq!(rig.backend.alive(), 0);
    assert_eq!(rig.pool.status().closes.by(CloseReason::Idle), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_lay_too_long_is_checked_before_it_is_lent() {
    let rig = Rig::new(|pool| pool.max_size(2).check_after_idle(5 * SECOND));
    on_a_tray(&rig).await;

    advance(5 * SECOND - MS).await;
    drop(rig.acquire().await);
    assert_eq!(rig.backend.calls(Call::Check), 0);
    advance(5 * SECOND).await;
    drop(rig.acquire().await);
    assert_eq!(rig.backend.calls(Call::Check), 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_lease_is_proof_of_life() {
    let rig = Rig::new(|pool| pool.max_size(2).check_after_idle(5 * SECOND));
    on_a_tray(&rig).await;

    let lease = rig.acquire().await;
    advance(20 * SECOND).await;
    drop(lease);
    drop(rig.acquire().await);

    assert_eq!(rig.backend.calls(Call::Check), 0);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_expires_while_it_is_lent_is_closed_on_return() {
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .max_lifetime(60 * SECOND)
            .lifetime_jitter(0.0)
    });
    on_a_tray(&rig).await;
    advance(50 * SECOND).await;
    drop(rig.acquire().await);
    let lease = rig.acquire().await;
    advance(10 * SECOND).await;

    drop(lease);
    settle().await;

    assert_eq!(rig.pool.status().closes.by(CloseReason::Lifetime), 1);
    assert_eq!(rig.acquire().await.serial, 2);
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_closed_after_its_last_use() {
    let rig = Rig::new(|pool| pool.max_size(1).max_uses(5));

    let mut serials = Vec::new();
    for _ in 0..11 {
        serials.push(rig.acquire().await.serial);
        settle().await;
    }

    assert_eq!(serials, [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn an_operation_on_the_whole_pool_reaches_every_tray() {
    let rig = Rig::with_max_size(2);
    on_a_tray(&rig).await;
    rig.pool.invalidate();
    assert_eq!(rig.acquire().await.serial, 2, "invalidate");

    on_a_tray(&rig).await;
    rig.pool.suspend();
    assert!(rig.pool.try_acquire().unwrap().is_none(), "suspend");
    rig.pool.resume();

    on_a_tray(&rig).await;
    rig.pool.breaker().trip();
    let refused = rig.pool.acquire().await;
    assert!(matches!(refused, Err(AcquireError::Unavailable(_))));
    rig.pool.breaker().reset();

    on_a_tray(&rig).await;
    rig.pool.retain(|_| false);
    settle().await;
    assert_eq!(rig.backend.alive(), 0, "retain");

    on_a_tray(&rig).await;
    rig.pool.close();
    settle().await;
    assert_eq!(rig.backend.alive(), 0, "close");
    let refused = rig.pool.acquire().await;
    assert!(matches!(refused, Err(AcquireError::Closed { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_shrinks_takes_resources_off_trays() {
    let rig = Rig::with_max_size(3);
    rig.leave_idle(3).await;
    let held = [rig.acquire().await, rig.acquire().await];
    drop(rig.acquire().await);

    rig.pool.resize(1).unwrap();
    settle().await;
    assert_eq!(rig.backend.alive(), 2, "what is out is out");
    drop(held);
    settle().await;

    assert_eq!(rig.backend.alive(), 1);
    let _one = rig.acquire().await;
    assert!(rig.pool.try_acquire().unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_holders_is_seen() {
    let rig = Rig::with_max_size(1);
    on_a_tray(&rig).await;
    let _held = rig.acquire().await;

    let late = rig.pool.acquire_within(SECOND).await;

    assert_eq!(rig.recorder.of("nested_acquire").len(), 1);
    assert!(late.unwrap_err().to_string().contains("nested"));
}

#[tokio::test(start_paused = true)]
async fn health_sees_the_leases_of_trays() {
    let rig = Rig::with_max_size(1);
    on_a_tray(&rig).await;
    assert_eq!(rig.pool.health(), Health::Healthy);

    on_a_tray(&rig).await;
    let _held = rig.acquire().await;
    assert_eq!(rig.pool.health(), Health::Busy);
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_of_every_trip() {
    let rig = Rig::with_max_size(1);
    on_a_tray(&rig).await;

    let lease = rig.acquire().await;
    advance(250 * MS).await;
    drop(lease);

    assert_eq!(rig.recorder.of("acquired").len(), 4);
    let released = rig.recorder.of("released");
    assert_eq!(released.len(), 4);
    assert!(released[3].contains("held=250ms"), "{}", released[3]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_closes_the_resource_on_a_tray() {
    let rig = Rig::with_max_size(1);
    on_a_tray(&rig).await;
    let backend = Arc::clone(&rig.backend);

    drop(rig);
    settle().await;

    assert_eq!((backend.alive(), backend.calls(Call::Close)), (0, 1));
    assert_eq!(Arc::strong_count(&backend), 1, "the pool is gone, too");
}

#[test]
fn a_pool_that_no_runtime_can_close_is_freed_with_the_resource_on_a_tray() {
    let rig = Rig::with_max_size(1);
    let backend = Arc::clone(&rig.backend);
    let runtime = single();
    runtime.block_on(on_a_tray(&rig));
    drop(runtime);

    drop(rig);

    assert_eq!(Arc::strong_count(&backend), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_outlives_its_pool() {
    let rig = Rig::with_max_size(1);
    on_a_tray(&rig).await;
    let backend = Arc::clone(&rig.backend);
    let lease = rig.acquire().await;

    drop(rig);
    assert_eq!(backend.alive(), 1);
    drop(lease);
    settle().await;

    assert_eq!((backend.alive(), backend.calls(Call::Close)), (0, 1));
    assert_eq!(Arc::strong_count(&backend), 1);
}

#[tokio::test(start_paused = true)]
async fn broken_dirty_discarded_and_detached_resources_go_through_the_ledger() {
    let rig = Rig::with_max_size(1);
    on_a_tray(&rig).await;
    rig.acquire().await.broken = true;
    settle().await;
    assert_eq!(rig.pool.status().closes.by(CloseReason::Broken), 1);

    on_a_tray(&rig).await;
    rig.acquire().await.dirty = true;
    settle().await;
    assert_eq!(rig.backend.calls(Call::Clean), 1);

    on_a_tray(&rig).await;
    Lease::discard(rig.acquire().await);
    settle().await;
    assert_eq!(rig.pool.status().closes.by(CloseReason::Discarded), 1);

    on_a_tray(&rig).await;
    let thing = Lease::detach(rig.acquire().await);
    assert_eq!(rig.pool.status().total, 0);
    drop(thing);
    rig.assert_full_service().await;
}

/// Many pools and threads: trays pass from pool to pool, and nothing is mixed up.
#[test]
fn trays_pass_from_pool_to_pool() {
    let runtime = with_workers(2);
    runtime.block_on(async {
        for round in 0..50_u64 {
            let numbers = Pool::from_fn(move || async move { Ok::<_, std::io::Error>(round) })
                .max_size(3)
                .build()
                .unwrap();
            let texts =
                Pool::from_fn(move || async move { Ok::<_, std::io::Error>(round.to_string()) })
                    .max_size(3)
                    .build()
                    .unwrap();
            let tasks: Vec<_> = (0..4)
                .map(|_| {
                    let (numbers, texts) = (numbers.clone(), texts.clone());
                    tokio::spawn(async move {
                        for _ in 0..20 {
                            let number = numbers.acquire().await.unwrap();
                            let text = texts.acquire().await.unwrap();
                            assert_eq!((*number, text.as_str()), (round, &*round.to_string()));
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            let (numbers, texts) = (numbers.status(), texts.status());
            assert_eq!((numbers.acquired, numbers.released), (80, 80));
            assert_eq!((texts.acquired, texts.released), (80, 80));
        }
    });
}
