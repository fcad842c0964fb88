//! `Pool::evict`: resources that no caller holds are closed, the least recently used first.

use std::time::Duration;

use cenote::CloseReason;
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::rigs::hold;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn the_least_recently_used_idle_resources_are_closed_and_leases_stay() {
    let rig = Rig::with_max_size(4);
    let mut held = hold(&rig, 4).await;
    let kept = held.remove(0);
    for lease in held {
        drop(lease);
        advance(SECOND).await;
    }

    let evicted = (rig.pool.evict(2), rig.pool.evict(2), rig.pool.evict(2));
    settle().await;

    assert_eq!(evicted, (2, 1, 0));
    assert_eq!(
        rig.recorder.of("closed"),
        ["closed 2 shrunk", "closed 3 shrunk", "closed 4 shrunk"]
    );
    drop(kept);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_resource_that_is_on_a_tray_is_found() {
    let rig = Rig::with_max_size(2);
    for _ in 0..3 {
        drop(rig.acquire().await);
    }

    assert_eq!(rig.pool.evict(usize::MAX), 1);
    settle().await;

    assert_eq!(rig.backend.alive(), 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_being_cleaned_is_closed_when_that_is_done_and_counts_once() {
    let rig = Rig::with_max_size(2);
    rig.backend.always(Call::Clean, Gate::Slow(SECOND));
    let mut lease = rig.acquire().await;
    lease.dirty = true;
    drop(lease);
    settle().await;

    let evicted = (rig.pool.evict(1), rig.pool.evict(1));
    settle().await;
    let during = rig.backend.alive();
    advance(SECOND).await;

    assert_eq!((evicted, during), ((1, 0), 1));
    assert_eq!(rig.backend.alive(), 0);
    assert_eq!(rig.pool.status().closes.by(CloseReason::Invalidated), 1);
    rig.backend.heal();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_checked_for_no_caller_is_closed_when_that_is_done() {
    let rig = Rig::new(|pool| pool.max_size(2).check_after_idle(SECOND));
    drop(rig.acquire().await);
    rig.backend.always(Call::Check, Gate::Slow(SECOND));
    advance(SECOND * 2).await;
    let gives_up = rig.wait();
    settle().await;
    drop(gives_up);
    assert_eq!(rig.pool.status().checking, 1);
    assert_eq!(rig.pool.evict(5), 1);
    advance(SECOND).await;

    assert_eq!(rig.backend.alive(), 0);
    rig.backend.heal();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn an_open_is_left_alone_and_does_not_count() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Slow(SECOND));
    let mut waiting = rig.wait();
    settle().await;

    assert_eq!(rig.pool.evict(1), 0);
    advance(SECOND).await;

    assert!(waiting.is_served());
    drop(waiting);
    rig.backend.heal();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_has_nothing_to_evict() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    rig.pool.close();

    assert_eq!(rig.pool.evict(1), 0);
}
