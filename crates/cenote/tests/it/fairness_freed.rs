//! Capacity that is freed without a return wakes the next waiter.

use std::time::Duration;

use cenote::{AcquireError, Lease};
use cenote_testkit::clock::settle;
use cenote_testkit::{Call, Gate, GatedManager, Rig};

const MS: Duration = Duration::from_millis(1);

/// How a holder makes room without giving the resource back.
#[derive(Clone, Copy, Debug)]
enum Freed {
    Discarded,
    Broken,
    FailedClean,
    Detached,
    FailedReturnCheck,
}

async fn free(rig: &Rig, mut lease: Lease<GatedManager>, how: Freed) {
    match how {
        Freed::Discarded => Lease::discard(lease),
        Freed::Broken => {
            lease.broken = true;
            drop(lease);
        }
        Freed::FailedClean => {
            rig.backend.once(Call::Clean, Gate::Fail);
            lease.dirty = true;
            drop(lease);
        }
        Freed::Detached => drop(Lease::detach(lease)),
        Freed::FailedReturnCheck => {
            rig.backend.once(Call::Check, Gate::Fail);
            drop(lease);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn capacity_that_is_freed_goes_to_the_next_waiter() {
    use Freed::{Broken, Detached, Discarded, FailedClean, FailedReturnCheck};

    for how in [Discarded, Broken, FailedClean, Detached, FailedReturnCheck] {
        let checks = matches!(how, FailedReturnCheck);
        let rig = Rig::new(|pool| pool.max_size(1).check_on_return(checks));
        let held = rig.acquire().await;
        let pool = rig.pool.clone();
        let waiting = tokio::spawn(async move { pool.acquire_within(100 * MS).await });
        settle().await;

        free(&rig, held, how).await;

        let lease = waiting.await.unwrap();
        assert_eq!(lease.expect("capacity was freed").serial, 2, "{how:?}");
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn capacity_freed_by_a_failed_open_goes_to_the_next_waiter() {
    for gate in [Gate::Fail, Gate::Panic] {
        let rig = Rig::with_max_size(1);
        rig.backend.once(Call::Open, gate);

        let (first, second) = tokio::join!(rig.pool.acquire(), rig.pool.acquire());

        assert!(matches!(first, Err(AcquireError::Open { .. })), "{gate:?}");
        assert_eq!(second.unwrap().serial, 1, "{gate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_not_polled_holds_up_only_its_own_grant() {
    let rig = Rig::with_max_size(2);
    let (one, two) = (rig.acquire().await, rig.acquire().await);
    let sleeping = rig.wait();
    let pool = rig.pool.clone();
    let awake = tokio::spawn(async move { pool.acquire_within(100 * MS).await.map(drop) });
    settle().await;

    Lease::discard(one);
    Lease::discard(two);

    assert!(awake.await.unwrap().is_ok());
    drop(sleeping);
    rig.assert_full_service().await;
}
