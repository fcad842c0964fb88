//! What a caller is told: that the budget is used up and by which keys, or what else is wrong.

use std::error::Error;
use std::time::Duration;

use cenote::breaker::ConsecutiveFailures;
use cenote_keyed::{AcquireError, BuildError, Pools};
use cenote_testkit::clock::{advance, settle, timed};
use cenote_testkit::{Call, Fault, Gate, GatedManager};

use crate::SECOND;
use crate::rig::{Key, Rig};

#[tokio::test(start_paused = true)]
async fn a_timeout_for_want_of_a_place_names_the_keys_that_hold_them() {
    let rig = Rig::new(3, 2);
    let _held = (rig.hold(1, 2).await, rig.hold(2, 1).await);

    let late = rig.pools.acquire_within(&3, SECOND).await;

    let Err(AcquireError::UsedUp(seen)) = late else {
        panic!("{late:?}")
    };
    assert_eq!((seen.total, seen.held, seen.keys), (3, 3, 2));
    assert_eq!(seen.holders, [("1".to_owned(), 2), ("2".to_owned(), 1)]);
    assert_eq!(
        seen.to_string(),
        "key 3: no place within 1.0s: 3 of 3 places are held by 2 keys, 1 opens wait: 1 holds 2, \
         2 holds 1; shorten leases or raise `total`"
    );
    assert!(AcquireError::UsedUp(seen).is_retryable());
}

#[tokio::test(start_paused = true)]
async fn a_timeout_at_the_cap_of_the_key_does_not_blame_the_budget() {
    let rig = Rig::new(3, 1);
    let _held = rig.acquire(1).await;

    let late = rig.pools.acquire_within(&1, SECOND).await;

    let Err(AcquireError::Pool(cenote::AcquireError::TimedOut(seen))) = late else {
        panic!("{late:?}")
    };
    assert_eq!(seen.holders().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_place_does_not_count_as_an_open() {
    let rig = Rig::with(|pools| pools.total(1).max_size(1).open_timeout(SECOND));
    rig.backend(2).always(Call::Open, Gate::Slow(SECOND / 2));
    let held = rig.acquire(1).await;
    let waiting = rig.wait(2);
    advance(SECOND * 5).await;

    drop(held);

    assert!(waiting.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_open_that_hangs_ends_after_its_own_limit_and_gives_its_place_back() {
    let rig = Rig::with(|pools| pools.total(1).max_size(1).open_timeout(SECOND));
    rig.backend(1).always(Call::Open, Gate::Hang);

    let (hung, took) = timed(rig.pools.acquire(&1)).await;

    assert_eq!(took, SECOND);
    let text = hung.unwrap_err().to_string();
    assert!(
        text.contains("opening took longer than 1.0s: see `open_timeout`"),
        "{text}"
    );
    assert_eq!(rig.pools.status().held, 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_error_of_the_manager_reaches_the_caller_as_it_is() {
    let rig = Rig::new(1, 1);
    rig.backend(1).once(Call::Open, Gate::Fail);

    let error = rig.pools.acquire(&1).await.unwrap_err();

    let mut cause = error.source();
    while let Some(next) = cause.filter(|cause| !cause.is::<Fault>()) {
        cause = next.source();
    }
    assert!(cause.is_some(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn the_breaker_of_one_key_stops_no_other_and_a_wait_for_a_place_is_no_failure() {
    let rig = Rig::with(|pools| {
        let pools = pools.total(1).max_size(1);
        pools.pool(|_, pool| pool.breaker(ConsecutiveFailures::new(1)))
    });
    rig.backend(1).always(Call::Open, Gate::Fail);
    assert!(rig.pools.acquire(&1).await.is_err());

    let held = rig.acquire(2).await;
    let told = rig.pools.acquire(&1).await.unwrap_err();
    assert!(matches!(
        told,
        AcquireError::Pool(cenote::AcquireError::Unavailable(_))
    ));
    let late = rig.pools.acquire_within(&3, SECOND).await;
    assert!(matches!(late, Err(AcquireError::UsedUp(_))));
    drop(held);
    settle().await;

    assert!(rig.pools.acquire(&3).await.is_ok());
    advance(SECOND * 120).await;
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_recovers_without_callers_takes_free_places_only() {
    let rig = Rig::with(|pools| {
        let pools = pools.total(1).max_size(1);
        pools.pool(|_, pool| pool.breaker(ConsecutiveFailures::new(1)))
    });
    rig.backend(1).once(Call::Open, Gate::Fail);
    assert!(rig.pools.acquire(&1).await.is_err());
    let held = rig.acquire(2).await;

    for _ in 0..120 {
        advance(SECOND).await;
    }

    assert_eq!(rig.backend(1).calls(Call::Open), 1);
    drop(held);
    assert!(rig.pools.acquire(&1).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn settings_are_checked_when_the_pools_are_built() {
    let builder = || Pools::builder(|_: &Key| GatedManager(Default::default()));

    let total = builder().total(0).build().unwrap_err();
    let size = builder().max_size(0).build().unwrap_err();

    assert_eq!(total.to_string(), "`total` is 0: it must be at least 1");
    assert!(matches!(size, BuildError::Config(error) if error.field() == "max_size"));
    let later = builder()
        .pool(|_, pool| pool.check_timeout(Duration::ZERO))
        .build()
        .unwrap();
    assert!(matches!(
        later.acquire(&1).await,
        Err(AcquireError::Config(_))
    ));
}
