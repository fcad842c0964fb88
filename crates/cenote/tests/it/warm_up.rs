//! Warm-up: `build` opens nothing, `warm` opens to `min_size`, and its failure is an error or is
//! tolerated.

use std::error::Error;
use std::time::Duration;

use cenote::config::WarmUp;
use cenote::{Lease, OpenError, WarmError};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig, cut};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn building_opens_nothing() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(3).min_idle(2));

    tokio::time::sleep(HOUR).await;

    assert_eq!(rig.backend.calls(Call::Open), 0);
    assert_eq!(rig.pool.status().total, 0);
}

#[tokio::test(start_paused = true)]
async fn warm_opens_to_min_size() {
    let rig = Rig::new(|pool| pool.max_size(5).min_size(3));

    rig.pool.warm().await.unwrap();

    let status = rig.pool.status();
    assert_eq!((status.idle, status.total, status.opened), (3, 3, 3));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_pool_is_warmed_and_lends_nothing() {
    let rig = Rig::new(|pool| pool.max_size(5).min_size(3));
    rig.pool.suspend();

    rig.pool.warm().await.unwrap();

    assert_eq!(rig.pool.status().idle, 3);
    assert!(rig.pool.acquire_within(SECOND).await.is_err());
    rig.pool.resume();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn warm_waits_until_the_resources_are_open() {
    let rig = Rig::new(|pool| pool.max_size(5).min_size(3));
    rig.backend.always(Call::Open, Gate::Slow(SECOND * 3));
    let pool = rig.pool.clone();
    let warming = tokio::spawn(async move { pool.warm().await.is_ok() });

    advance(SECOND * 3 - MS).await;
    let early = warming.is_finished();
    advance(MS).await;

    assert!(!early);
    assert!(warming.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn without_min_size_and_min_idle_one_resource_is_opened() {
    let rig = Rig::with_max_size(2);

    rig.pool.warm().await.unwrap();

    assert_eq!(rig.backend.calls(Call::Open), 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_warm_up_opens_nothing_more() {
    let rig = Rig::new(|pool| pool.max_size(5).min_size(3));
    rig.pool.warm().await.unwrap();
    let held = rig.acquire().await;

    rig.pool.warm().await.unwrap();

    assert_eq!(rig.pool.status().opened, 3);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn warm_keeps_within_max_opening() {
    let rig = Rig::new(|pool| pool.max_size(7).min_size(7).max_opening(2));
    rig.backend.always(Call::Open, Gate::Slow(SECOND));
    let pool = rig.pool.clone();
    let warming = tokio::spawn(async move { pool.warm().await.is_ok() });

    let mut most = 0;
    for _ in 0..45 {
        advance(SECOND / 10).await;
        most = most.max(rig.pool.status().opening);
    }

    assert_eq!(most, 2);
    assert!(warming.is_finished());
    assert_eq!((rig.pool.status().idle, rig.backend.peak()), (7, 7));
}

#[tokio::test(start_paused = true)]
async fn several_warm_ups_at_once_open_no_more_than_one_would() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(3));
    rig.backend.always(Call::Open, Gate::Slow(SECOND));
    let warming: Vec<_> = (0..5)
        .map(|_| {
            let pool = rig.pool.clone();
            tokio::spawn(async move { pool.warm().await.is_ok() })
        })
        .collect();

    advance(SECOND).await;

    for one in warming {
        assert!(one.is_finished());
        assert!(one.await.unwrap());
    }
    assert_eq!(rig.pool.status().opened, 3);
}

#[tokio::test(start_paused = true)]
async fn warm_runs_beside_acquires() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(3));
    rig.backend.always(Call::Open, Gate::Slow(SECOND));
    let waiting = [rig.wait(), rig.wait()];
    let pool = rig.pool.clone();
    let warming = tokio::spawn(async move { pool.warm().await.is_ok() });

    advance(SECOND).await;

    assert!(warming.await.unwrap());
    assert_eq!(rig.pool.status().opened, 3);
    for one in waiting {
        assert!(one.await.is_ok());
    }
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_open_is_the_error_of_warm_with_the_cause() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(2));
    rig.backend.always(Call::Open, Gate::Fail);

    let error = rig.pool.warm().await.unwrap_err();

    assert!(matches!(error, WarmError::Open(OpenError::Failed(_))));
    assert_eq!(
        error.source().unwrap().to_string(),
        "the backend refused Open"
    );
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_open_that_fails_is_the_error_of_warm_though_the_others_succeed() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(3));
    rig.backend.once(Call::Open, Gate::Fail);

    let warmed = rig.pool.warm().await;

    assert!(matches!(warmed, Err(WarmError::Open(_))), "{warmed:?}");
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn warm_fails_at_once_and_not_when_the_slowest_open_is_done() {
    let rig = Rig::new(|pool| pool.max_size(4).min_size(2));
    rig.backend.once(Call::Open, Gate::Fail);
    rig.backend.once(Call::Open, Gate::Hang);
    let pool = rig.pool.clone();

    let warming = tokio::spawn(async move { pool.warm().await.is_err() });
    settle().await;

    assert!(warming.is_finished());
    assert!(warming.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_panicking_open_is_the_error_of_warm() {
    let rig = Rig::new(|pool| pool.max_size(1).min_size(1));
    rig.backend.once(Call::Open, Gate::Panic);

    let error = rig.pool.warm().await.unwrap_err();

    assert!(matches!(error, WarmError::Open(OpenError::Panicked(_))));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_hung_open_is_the_error_of_warm_when_open_timeout_is_over() {
    let rig = Rig::new(|pool| pool.max_size(1).min_size(1).open_timeout(SECOND * 3));
    rig.backend.once(Call::Open, Gate::Hang);
    let pool = rig.pool.clone();
    let warming = tokio::spawn(async move { pool.warm().await });

    advance(SECOND * 3 - MS).await;
    let early = warming.is_finished();
    advance(MS).await;

    assert!(!early);
    let error = warming.await.unwrap().unwrap_err();
    assert!(matches!(error, WarmError::Open(OpenError::TimedOut(_))));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn once_warm_has_failed_it_opens_no_more() {
    for tolerant in [WarmUp::Required, WarmUp::BestEffort] {
        let rig = Rig::new(|pool| pool.max_size(4).min_size(2).warm_up(tolerant));
        rig.backend.always(Call::Open, Gate::Fail);

        let warmed = rig.pool.warm().await;
        settle().await;

        assert_eq!(warmed.is_ok(), tolerant == WarmUp::BestEffort);
        assert_eq!(rig.backend.calls(Call::Open), 2, "{tolerant:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn warm_can_be_called_again_after_it_failed() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(2));
    rig.backend.always(Call::Open, Gate::Fail);
    let first = rig.pool.warm().await;
    rig.backend.heal();

    let second = rig.pool.warm().await;

    assert!(first.is_err() && second.is_ok());
    assert_eq!(rig.pool.status().idle, 2);
}

#[tokio::test(start_paused = true)]
async fn an_old_failure_is_not_the_error_of_warm() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(2));
    rig.backend.once(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());

    let warmed = rig.pool.warm().await;

    assert!(warmed.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_failure_can_be_tolerated_and_the_pool_is_filled_later() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(2).warm_up(WarmUp::BestEffort));
    rig.backend.always(Call::Open, Gate::Fail);

    let warmed = rig.pool.warm().await;
    let short = rig.backend.alive();
    rig.backend.heal();
    tokio::time::sleep(SECOND * 60).await;

    assert!(warmed.is_ok());
    assert_eq!((short, rig.pool.status().idle), (0, 2));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_close_during_warm_is_reported_at_once() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(2));
    rig.backend.always(Call::Open, Gate::Hang);
    let pool = rig.pool.clone();
    let warming = tokio::spawn(async move { pool.warm().await });
    settle().await;

    rig.pool.close();
    settle().await;

    assert!(warming.is_finished());
    assert!(matches!(warming.await.unwrap(), Err(WarmError::Closed)));
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_is_not_warmed() {
    for tolerant in [WarmUp::Required, WarmUp::BestEffort] {
        let rig = Rig::new(|pool| pool.min_size(2).warm_up(tolerant));
        rig.pool.close();

        let warmed = rig.pool.warm().await;

        assert!(matches!(warmed, Err(WarmError::Closed)), "{tolerant:?}");
        assert_eq!(rig.backend.calls(Call::Open), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_warm_up_dropped_midway_still_finishes_its_opens() {
    let rig = Rig::new(|pool| pool.max_size(3).min_size(2));
    rig.backend.always(Call::Open, Gate::Slow(SECOND));

    let given_up = cut(1, rig.pool.warm()).await;
    advance(SECOND).await;

    assert!(given_up.is_none());
    assert_eq!((rig.pool.status().idle, rig.backend.peak()), (2, 2));
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn warm_waits_for_room_that_is_still_being_closed() {
    let rig = Rig::new(|pool| pool.max_size(1).min_size(1));
    let lease = rig.acquire().await;
    rig.backend.once(Call::Close, Gate::Slow(SECOND));
    Lease::discard(lease);
    settle().await;
    let pool = rig.pool.clone();
    let warming = tokio::spawn(async move { pool.warm().await.is_ok() });

    settle().await;
    let early = warming.is_finished();
    advance(SECOND).await;
    advance(MS).await;

    assert!(!early);
    assert!(warming.await.unwrap());
    assert_eq!(rig.backend.peak(), 1);
}
