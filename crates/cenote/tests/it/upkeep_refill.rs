//! Refill: to `min_size` in total and `min_idle` spare, with back-off while opening fails, and
//! never over `max_size`.

use std::sync::Arc;
use std::time::Duration;

use cenote::Lease;
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::openings::Openings;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A rig where nothing but the refill opens or closes.
fn filled(max_size: usize, min_size: usize, min_idle: usize) -> Rig {
    Rig::new(|pool| {
        pool.max_size(max_size)
            .min_size(min_size)
            .min_idle(min_idle)
            .max_opening(max_size)
            .idle_timeout(None)
            .max_lifetime(None)
            .upkeep_interval(HOUR)
    })
}

/// Lets the refill happen: upkeep sleeps for at least a millisecond.
async fn breathe() {
    for _ in 0..3 {
        advance(MS).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_use_fills_the_pool_to_min_size() {
    let rig = filled(5, 3, 0);

    let held = rig.acquire().await;
    breathe().await;

    let status = rig.pool.status();
    assert_eq!((status.total, status.in_use), (3, 1));
    assert_eq!(rig.backend.alive(), 3);
    drop(held);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn min_idle_are_kept_beyond_the_resources_in_use() {
    let rig = filled(5, 0, 2);

    let mut held = Vec::new();
    let mut seen = Vec::new();
    for _ in 0..3 {
        held.push(rig.acquire().await);
        breathe().await;
        let status = rig.pool.status();
        seen.push((status.in_use, status.idle));
    }

    assert_eq!(seen, [(1, 2), (2, 2), (3, 2)]);
    assert_eq!(rig.backend.peak(), 5);
}

#[tokio::test(start_paused = true)]
async fn min_idle_never_lifts_the_pool_over_max_size() {
    let rig = filled(4, 0, 3);

    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(rig.acquire().await);
        breathe().await;
    }

    let status = rig.pool.status();
    assert_eq!((status.in_use, status.idle), (3, 1));
    assert_eq!(rig.backend.peak(), 4);
    drop(held);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_discarded_broken_or_detached_resource_is_replaced() {
    let rig = filled(4, 3, 0);
    let (discarded, mut broken, detached) = (
        rig.acquire().await,
        rig.acquire().await,
        rig.acquire().await,
    );
    broken.broken = true;

    Lease::discard(discarded);
    drop(broken);
    let taken = Lease::detach(detached);
    drop(taken);
    breathe().await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.opened), (3, 6));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn an_invalidated_resource_is_replaced() {
    let rig = filled(3, 3, 0);
    drop(rig.acquire().await);
    breathe().await;

    rig.pool.invalidate();
    breathe().await;

    let status = rig.pool.status();
    assert_eq!((status.idle, status.opened), (3, 6));
    assert_eq!(rig.backend.peak(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_still_closing_is_not_refilled_before_it_is_free() {
    let rig = filled(1, 1, 0);
    let lease = rig.acquire().await;
    rig.backend.once(Call::Close, Gate::Slow(SECOND));

    Lease::discard(lease);
    advance(SECOND - MS).await;
    let closing = rig.pool.status();
    advance(MS).await;
    breathe().await;

    assert_eq!(
        (closing.closing, closing.opening, closing.opened),
        (1, 0, 1)
    );
    assert_eq!((rig.pool.status().idle, rig.backend.peak()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn refill_keeps_within_max_opening() {
    let rig = Rig::new(|pool| pool.max_size(6).min_size(6).max_opening(2));
    rig.backend.always(Call::Open, Gate::Slow(SECOND));

    let held = rig.acquire().await;
    let mut most = 0;
    for _ in 0..50 {
        advance(Duration::from_millis(100)).await;
        most = most.max(rig.pool.status().opening);
    }

    assert_eq!(most, 2);
    assert_eq!(rig.pool.status().total, 6);
    drop(held);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn while_opening_fails_the_gaps_between_tries_grow() {
    let begins = Arc::new(Openings::default());
    let rig = Rig::new(|pool| pool.min_size(1).observer(begins.clone()));
    let lease = rig.acquire().await;
    rig.backend.always(Call::Open, Gate::Fail);

    Lease::discard(lease);
    tokio::time::sleep(Duration::from_secs(30)).await;

    // The first gap is the lifetime of the resource that was discarded.
    let gaps = begins.gaps().split_off(1);
    assert!((5..20).contains(&gaps.len()), "{gaps:?}");
    assert!(gaps.is_sorted(), "{gaps:?}");
    assert!(gaps[gaps.len() - 1] > gaps[0] * 4, "{gaps:?}");
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_gaps_have_a_longest_so_that_recovery_is_noticed() {
    let begins = Arc::new(Openings::default());
    let rig = Rig::new(|pool| pool.min_size(1).observer(begins.clone()));
    rig.backend.always(Call::Open, Gate::Fail);

    let failed = rig.pool.acquire().await;
    tokio::time::sleep(HOUR).await;

    assert!(failed.is_err());
    let longest = begins.gaps().into_iter().max().unwrap();
    assert!(longest <= Duration::from_secs(60), "{longest:?}");
}

#[tokio::test(start_paused = true)]
async fn the_gaps_are_jittered() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let begins = Arc::new(Openings::default());
        let rig = Rig::new(|pool| pool.min_size(1).observer(begins.clone()));
        rig.backend.always(Call::Open, Gate::Fail);
        assert!(rig.pool.acquire().await.is_err());

        tokio::time::sleep(HOUR / 12).await;

        seen.push(begins.gaps());
    }
    assert!(seen[0].len() > 8);
    assert_ne!(seen[0], seen[1]);
}

#[tokio::test(start_paused = true)]
async fn a_success_ends_the_back_off() {
    let begins = Arc::new(Openings::default());
    let rig = Rig::new(|pool| pool.min_size(1).idle_timeout(None).observer(begins.clone()));
    rig.backend.always(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());
    tokio::time::sleep(HOUR).await;
    rig.backend.heal();
    tokio::time::sleep(HOUR).await;
    let back = rig.pool.status().idle;

    rig.backend.once(Call::Open, Gate::Fail);
    Lease::discard(rig.acquire().await);
    tokio::time::sleep(Duration::from_secs(5)).await;

    assert_eq!(back, 1);
    assert_eq!(rig.pool.status().idle, 1);
}

#[tokio::test(start_paused = true)]
async fn a_hung_open_of_the_refill_ends_by_its_limit_and_is_tried_again() {
    let rig = filled(3, 2, 0);
    rig.backend.once(Call::Open, Gate::Pass);
    rig.backend.once(Call::Open, Gate::Hang);

    let held = rig.acquire().await;
    breathe().await;
    let hung = rig.pool.status();
    tokio::time::sleep(Duration::from_secs(15)).await;

    assert_eq!((hung.total, hung.opening), (2, 1));
    let status = rig.pool.status();
    assert_eq!(
        (status.total, status.opening, status.open_failed),
        (2, 0, 1)
    );
    drop(held);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_open_of_the_refill_is_tried_again() {
    let rig = filled(3, 2, 0);
    rig.backend.once(Call::Open, Gate::Pass);
    rig.backend.once(Call::Open, Gate::Panic);

    let held = rig.acquire().await;
    tokio::time::sleep(Duration::from_secs(2)).await;

    let status = rig.pool.status();
    assert_eq!((status.total, status.open_failed), (2, 1));
    drop(held);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn there_is_no_refill_while_suspended_and_it_goes_on_with_resume() {
    let rig = filled(3, 2, 0);
    let lease = rig.acquire().await;
    breathe().await;
    rig.pool.suspend();

    Lease::discard(lease);
    advance(SECOND * 60).await;
    let suspended = rig.pool.status();
    rig.pool.resume();
    breathe().await;

    assert_eq!((suspended.total, suspended.opened), (1, 2));
    assert_eq!(rig.pool.status().total, 2);
}

#[tokio::test(start_paused = true)]
async fn there_is_no_refill_while_the_breaker_is_inactive_and_it_goes_on_with_reset() {
    let rig = filled(3, 2, 0);
    let lease = rig.acquire().await;
    breathe().await;
    rig.pool.breaker().trip();

    Lease::discard(lease);
    advance(SECOND * 60).await;
    let inactive = rig.pool.status();
    rig.pool.breaker().reset();
    breathe().await;

    assert_eq!((inactive.total, inactive.opened), (1, 2));
    assert_eq!(rig.pool.status().total, 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_refilled_once_the_pool_is_closed() {
    let rig = filled(3, 2, 0);
    drop(rig.acquire().await);
    breathe().await;

    rig.pool.close();
    tokio::time::sleep(HOUR).await;

    assert_eq!(rig.pool.status().opened, 2);
    assert_eq!(rig.backend.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_resize_makes_room_for_the_missing_resources() {
    let rig = filled(2, 0, 2);
    let held = (rig.acquire().await, rig.acquire().await);
    breathe().await;
    let full = rig.pool.status().idle;

    rig.pool.resize(3).unwrap();
    breathe().await;

    settle().await;
    assert_eq!((full, rig.pool.status().idle), (0, 1));
    drop(held);
    rig.assert_full_service().await;
}
