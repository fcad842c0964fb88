//! The return: the order of its decisions, and that no caller has a resource before it is clean.

use std::time::Duration;

use cenote::{CloseReason, Lease, Status};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig, Thing, cut};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The flaws of a returned resource, in the order in which they count.
const FLAWS: [CloseReason; 6] = [
    CloseReason::PoolClosed,
    CloseReason::Invalidated,
    CloseReason::Discarded,
    CloseReason::Broken,
    CloseReason::Lifetime,
    CloseReason::Uses,
];

/// Returns a dirty resource with these flaws to the pool. Returns the status then, and how often
/// the resource was cleaned.
async fn give_back(flaws: &[CloseReason]) -> (Status, usize) {
    let has = |flaw| flaws.contains(&flaw);
    let rig = Rig::new(|mut pool| {
        if has(CloseReason::Uses) {
            pool = pool.max_uses(1);
        }
        if has(CloseReason::Lifetime) {
            pool = pool.max_lifetime(60 * SECOND);
        }
        pool.max_size(1)
    });
    let mut lease = rig.acquire().await;
    rig.pool.pause_upkeep();
    advance(61 * SECOND).await;
    lease.dirty = true;
    lease.broken = has(CloseReason::Broken);
    if has(CloseReason::Invalidated) {
        rig.pool.invalidate();
    }
    if has(CloseReason::PoolClosed) {
        rig.pool.close();
    }
    if has(CloseReason::Discarded) {
        Lease::discard(lease);
    } else {
        drop(lease);
    }
    settle().await;
    (rig.pool.status(), rig.backend.calls(Call::Clean))
}

#[tokio::test(start_paused = true)]
async fn a_flaw_closes_the_resource_before_it_is_cleaned() {
    for flaw in FLAWS {
        let (status, cleaned) = give_back(&[flaw]).await;

        assert_eq!(status.closes.by(flaw), 1, "{flaw}");
        assert_eq!((status.closes.total(), status.idle), (1, 0), "{flaw}");
        assert_eq!(cleaned, 0, "{flaw}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_flaws_the_first_in_the_order_of_the_return_counts() {
    for (nth, first) in FLAWS.into_iter().enumerate() {
        for second in FLAWS.into_iter().skip(nth + 1) {
            let (status, cleaned) = give_back(&[first, second]).await;

            let seen: Vec<_> = status.closes.iter().filter(|(_, n)| *n > 0).collect();
            assert_eq!(seen, [(first, 1)], "of {first} and {second}");
            assert_eq!(cleaned, 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_resource_without_a_flaw_is_cleaned_and_kept() {
    let (status, cleaned) = give_back(&[]).await;

    assert_eq!((status.idle, status.closes.total(), cleaned), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_clean_return_is_over_when_drop_is() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;

    drop(lease);

    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use, status.released), (1, 0, 1));
    assert_eq!(rig.backend.calls(Call::IsBroken), 1);
    assert_eq!(rig.backend.calls(Call::NeedsCleaning), 1);
}

#[tokio::test(start_paused = true)]
async fn a_clean_return_goes_straight_to_the_oldest_waiter() {
    let rig = Rig::with_max_size(1);
    let lease = rig.acquire().await;
    let mut waiting = rig.wait();

    drop(lease);

    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use, status.waiting), (0, 1, 0));
    assert!(waiting.is_served());
}

/// A runtime may run the waiter on the thread of the giver only.
#[tokio::test(start_paused = true)]
async fn a_release_lets_the_waiter_run_that_it_serves_and_ends_at_once_if_there_is_none() {
    for waits in [false, true] {
        let rig = Rig::with_max_size(1);
        let held = rig.acquire().await;
        let _waiting = waits.then(|| rig.wait());

        let ended = cut(1, Lease::release(held)).await;

        assert_eq!(ended.is_none(), waits);
    }
}

#[tokio::test(start_paused = true)]
async fn no_caller_has_a_dirty_resource_until_it_is_cleaned() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Clean, Gate::Slow(50 * MS));
    let mut lease = rig.acquire().await;
    lease.dirty = true;
    drop(lease);
    let mut waiting = rig.wait();

    advance(40 * MS).await;
    let status = rig.pool.status();
    assert_eq!((status.cleaning, status.idle, status.in_use), (1, 0, 0));
    assert_eq!((status.total, status.waiting), (1, 1));
    assert!(rig.pool.try_acquire().unwrap().is_none());
    assert!(!waiting.is_served());
    advance(11 * MS).await;

    let lease = waiting.await.unwrap();
    assert_eq!((Lease::id(&lease), lease.dirty), (1, false));
    assert_eq!(rig.pool.status().cleaning, 0);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_cannot_be_cleaned_is_closed() {
    for gate in [Gate::Fail, Gate::Panic, Gate::Hang] {
        let rig = Rig::with_max_size(1);
        rig.backend.once(Call::Clean, gate);
        let mut lease = rig.acquire().await;
        lease.dirty = true;

        drop(lease);
        advance(6 * SECOND).await;

        let closed = rig.pool.status().closes;
        assert_eq!(closed.by(CloseReason::FailedClean), 1, "{gate:?}");
        assert_eq!(rig.backend.alive(), 0, "{gate:?}");
        assert_eq!(rig.recorder.of("callback_failed").len(), 1, "{gate:?}");
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_it_is_looked_at_makes_it_broken() {
    for call in [Call::IsBroken, Call::NeedsCleaning] {
        let rig = Rig::with_max_size(1);
        let lease = rig.acquire().await;
        rig.backend.once(call, Gate::Panic);

        drop(lease);
        settle().await;

        let closed = rig.pool.status().closes;
        assert_eq!(closed.by(CloseReason::Broken), 1, "{call:?}");
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn check_on_return_closes_the_dead_and_keeps_the_living() {
    let rig = Rig::new(|pool| pool.max_size(2).check_on_return(true));
    let (dead, alive) = (rig.acquire().await, rig.acquire().await);
    rig.backend.once(Call::Check, Gate::Fail);

    drop(dead);
    settle().await;
    drop(alive);
    settle().await;

    let status = rig.pool.status();
    assert_eq!(
        (status.closes.by(CloseReason::FailedCheck), status.idle),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn before_release_is_asked_on_every_return_and_false_closes() {
    for gate in [Gate::Fail, Gate::Panic, Gate::Hang] {
        let rig = Rig::new(|pool| {
            pool.max_size(1)
                .before_release(async |thing: &mut Thing| thing.pass(Call::BeforeRelease).await)
        });
        drop(rig.acquire().await);
        settle().await;
        assert_eq!(rig.pool.status().idle, 1);
        rig.backend.once(Call::BeforeRelease, gate);

        drop(rig.acquire().await);
        advance(6 * SECOND).await;

        let closed = rig.pool.status().closes;
        assert_eq!(closed.by(CloseReason::Refused), 1, "{gate:?}");
        assert_eq!(rig.backend.calls(Call::BeforeRelease), 2, "{gate:?}");
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_clean_spares_the_check_and_the_hook() {
    let rig = Rig::new(|pool| {
        pool.max_size(1)
            .check_on_return(true)
            .before_release(async |thing: &mut Thing| thing.pass(Call::BeforeRelease).await)
    });
    rig.backend.once(Call::Clean, Gate::Fail);
    let mut lease = rig.acquire().await;
    lease.dirty = true;

    drop(lease);
    settle().await;

    assert_eq!(rig.backend.calls(Call::Check), 0);
    assert_eq!(rig.backend.calls(Call::BeforeRelease), 0);
    assert_eq!(rig.pool.status().closes.total(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_was_invalidated_during_its_cleaning_is_closed() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Clean, Gate::Slow(50 * MS));
    let mut lease = rig.acquire().await;
    lease.dirty = true;
    drop(lease);
    advance(10 * MS).await;

    rig.pool.invalidate();
    advance(50 * MS).await;

    let status = rig.pool.status();
    assert_eq!(
        (status.closes.by(CloseReason::Invalidated), status.idle),
        (1, 0)
    );
    rig.assert_full_service().await;
}
