//! Lifetime: no resource outlives `max_lifetime`, resources that were opened together do not expire
//! together, and a successor is opened first.

use std::collections::BTreeSet;
use std::time::Duration;

use cenote::{CloseReason, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::rigs::hold;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A successor is opened earlier by a tenth of the lifetime, and by five seconds at most. A tenth
/// of this is more than that.
const LIFE: Duration = Duration::from_secs(107);
const AHEAD: Duration = Duration::from_secs(5);

/// A rig whose resources live exactly for `LIFE`, and are never evicted.
fn mortal(max_size: usize, min_size: usize) -> Rig {
    Rig::new(|pool| {
        pool.max_size(max_size)
            .min_size(min_size)
            .max_lifetime(LIFE)
            .lifetime_jitter(0.0)
            .idle_timeout(None)
            .leak_after(None)
            .upkeep_interval(HOUR)
    })
}

#[tokio::test(start_paused = true)]
async fn without_jitter_a_resource_lives_exactly_as_long_as_it_may() {
    let rig = mortal(1, 0);
    drop(rig.acquire().await);

    advance(LIFE - MS).await;
    let before = rig.pool.status();
    advance(MS).await;
    let after = rig.pool.status();

    assert_eq!((before.idle, before.closes.total()), (1, 0));
    assert_eq!((after.idle, after.closes.by(CloseReason::Lifetime)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn use_does_not_make_a_life_longer() {
    let rig = mortal(1, 0);

    for _ in 1..LIFE.as_secs() {
        drop(rig.acquire().await);
        advance(SECOND).await;
    }
    let before = rig.pool.status().closes.total();
    drop(rig.acquire().await);
    advance(SECOND).await;

    assert_eq!(before, 0);
    assert_eq!(rig.recorder.of("closed"), ["closed 1 lifetime"]);
}

#[tokio::test(start_paused = true)]
async fn a_returned_resource_is_closed_exactly_when_its_lifetime_ends() {
    let rig = mortal(1, 0);
    let held = rig.acquire().await;
    advance(LIFE - Duration::from_secs(20)).await;

    drop(held);
    advance(Duration::from_secs(20)).await;

    assert_eq!(rig.recorder.of("closed"), ["closed 1 lifetime"]);
}

#[tokio::test(start_paused = true)]
async fn jitter_spreads_the_ends_of_resources_opened_together() {
    let count = 50;
    let life = Duration::from_secs(100);
    let rig = Rig::new(|pool| {
        pool.max_size(count)
            .max_opening(count)
            .max_lifetime(life)
            .lifetime_jitter(0.5)
            .idle_timeout(None)
    });
    let leases = hold(&rig, count).await;
    drop(leases);
    let gone = || {
        let first_born: Vec<_> = (1..=count)
            .map(|id| format!("closed {id} lifetime"))
            .collect();
        let closed = rig.recorder.of("closed");
        closed
            .iter()
            .filter(|line| first_born.contains(line))
            .count()
    };

    advance(life / 2 - MS).await;
    let too_early = gone();
    let mut ends = BTreeSet::new();
    for second in 0..life.as_secs() / 2 {
        let before = gone();
        advance(SECOND).await;
        if gone() > before {
            ends.insert(second);
        }
    }
    // A timer fires up to a millisecond late.
    advance(MS * 2).await;

    assert_eq!(too_early, 0);
    assert_eq!(gone(), count);
    assert!(ends.len() > 10, "all ended within {ends:?}");
    assert!(rig.backend.peak() <= count);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_expires_in_use_is_closed_on_return() {
    let rig = mortal(1, 0);
    let held = rig.acquire().await;

    advance(LIFE * 2).await;
    let while_held = rig.pool.status();
    assert_eq!(held.serial, 1);
    drop(held);
    settle().await;

    assert_eq!((while_held.in_use, while_held.closes.total()), (1, 0));
    assert_eq!(rig.recorder.of("closed"), ["closed 1 lifetime"]);
    assert_eq!(rig.pool.status().idle, 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_expired_is_lent_even_while_upkeep_is_paused() {
    let rig = mortal(2, 0);
    drop(rig.acquire().await);
    rig.pool.pause_upkeep();
    advance(LIFE).await;
    let idle = rig.pool.status().idle;

    let lease = rig.acquire().await;

    assert_eq!(idle, 1);
    assert_eq!(Lease::id(&lease), 2);
    assert_eq!(rig.pool.status().closes.by(CloseReason::Lifetime), 1);
}

#[tokio::test(start_paused = true)]
async fn where_there_is_room_the_successor_is_opened_first() {
    let rig = mortal(2, 1);
    drop(rig.acquire().await);

    advance(LIFE - AHEAD - MS).await;
    let before = rig.pool.status().opened;
    advance(MS).await;
    let ahead = rig.pool.status();
    advance(AHEAD).await;
    let after = rig.pool.status();

    assert_eq!(before, 1);
    assert_eq!((ahead.opened, ahead.idle), (2, 2));
    assert_eq!((after.idle, after.closes.by(CloseReason::Lifetime)), (1, 1));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_in_use_has_its_successor_opened_too_and_only_once() {
    let rig = mortal(5, 1);
    let held = rig.acquire().await;

    for _ in 0..LIFE.as_secs() + 60 {
        advance(SECOND).await;
    }
    let overdue = rig.pool.status();
    drop(held);
    settle().await;

    assert_eq!((overdue.in_use, overdue.idle, overdue.opened), (1, 1, 2));
    assert_eq!(rig.recorder.of("closed"), ["closed 1 lifetime"]);
}

#[tokio::test(start_paused = true)]
async fn where_there_is_no_room_the_old_one_goes_first() {
    let rig = mortal(1, 1);
    drop(rig.acquire().await);

    advance(LIFE - MS).await;
    let before = rig.pool.status();
    advance(MS).await;
    advance(MS).await;

    assert_eq!((before.opened, before.idle), (1, 1));
    let status = rig.pool.status();
    assert_eq!((status.opened, status.idle), (2, 1));
    assert_eq!(rig.backend.peak(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_pool_that_expires_all_at_once_stays_within_max_size() {
    let rig = mortal(4, 4);
    let leases = hold(&rig, 4).await;
    drop(leases);

    for _ in 0..LIFE.as_secs() * 3 {
        advance(SECOND).await;
    }

    let status = rig.pool.status();
    assert_eq!(status.idle, 4);
    assert!(status.closes.by(CloseReason::Lifetime) >= 8);
    assert_eq!(rig.backend.peak(), 4);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_successor_that_cannot_be_opened_does_not_shorten_the_old_ones_life() {
    let rig = mortal(2, 1);
    drop(rig.acquire().await);
    rig.backend.always(Call::Open, Gate::Fail);

    advance(LIFE - MS).await;
    let status = rig.pool.status();
    let lease = rig.acquire().await;

    assert!(status.open_failed > 0);
    assert_eq!(status.idle, 1);
    assert_eq!(Lease::id(&lease), 1);
}

#[tokio::test(start_paused = true)]
async fn a_successor_that_hangs_does_not_shorten_the_old_ones_life() {
    let rig = mortal(2, 1);
    drop(rig.acquire().await);
    rig.backend.always(Call::Open, Gate::Hang);

    advance(LIFE - MS).await;
    let status = rig.pool.status();

    assert_eq!((status.idle, status.opening), (1, 1));
    rig.backend.heal();
    tokio::time::sleep(Duration::from_secs(60)).await;
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn max_uses_closes_on_the_last_return_and_not_before() {
    let rig = Rig::new(|pool| pool.max_size(1).max_uses(3));

    for _ in 0..2 {
        drop(rig.acquire().await);
    }
    settle().await;
    let after_two = rig.pool.status().closes.total();
    drop(rig.acquire().await);
    settle().await;

    assert_eq!(after_two, 0);
    assert_eq!(rig.recorder.of("closed"), ["closed 1 uses"]);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_short_lived_resource_has_its_successor_opened_in_its_last_tenth() {
    let rig = Rig::new(|pool| {
        pool.max_size(2)
            .min_size(1)
            .max_lifetime(SECOND * 10)
            .lifetime_jitter(0.0)
            .upkeep_interval(HOUR)
    });
    drop(rig.acquire().await);

    advance(SECOND * 9 - MS).await;
    let before = rig.backend.calls(Call::Open);
    advance(MS).await;

    assert_eq!((before, rig.backend.calls(Call::Open)), (1, 2));
}
