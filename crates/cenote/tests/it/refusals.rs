//! Refused acquires are counted by reason, and so is a warm-up reported.

use cenote::config::{Nested, WarmUp};
use cenote::status::RefusalReason;
use cenote_testkit::clock::settle;
use cenote_testkit::{Call, Gate, Rig};

fn refused(rig: &Rig, reason: RefusalReason) -> (u64, usize) {
    let refusals = rig.pool.status().refusals;
    let told = rig.recorder.of("refused");
    assert_eq!(refusals.total(), told.len() as u64, "{told:?}");
    let line = format!("refused {}", reason.name());
    let told = told.into_iter().filter(|told| *told == line);
    (refusals.by(reason), told.count())
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_counts_as_rejected() {
    let rig = Rig::new(|pool| pool.max_size(1).max_waiters(0));
    let _held = rig.acquire().await;

    assert!(rig.pool.acquire().await.is_err());

    assert_eq!(refused(&rig, RefusalReason::Rejected), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_nested_acquire_that_is_denied_is_counted() {
    let rig = Rig::new(|pool| pool.nested(Nested::Deny));
    let pool = rig.pool.clone();

    let task = tokio::spawn(async move {
        let _held = pool.acquire().await.unwrap();
        pool.acquire().await.is_err()
    });

    assert!(task.await.unwrap());
    assert_eq!(refused(&rig, RefusalReason::Nested), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn waiters_and_newcomers_of_a_tripped_breaker_are_counted() {
    let rig = Rig::with_max_size(1);
    let _held = rig.acquire().await;
    let waiting = rig.wait();

    rig.pool.breaker().trip();
    assert!(rig.pool.acquire().await.is_err());
    assert!(rig.pool.try_acquire().is_err());
    assert!(waiting.await.is_err());

    assert_eq!(refused(&rig, RefusalReason::Unavailable), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn waiters_and_newcomers_of_a_closed_pool_are_counted() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let (granted, waiting) = (rig.wait(), rig.wait());
    drop(held);

    rig.pool.close();
    assert!(rig.pool.acquire().await.is_err());
    assert!(granted.await.is_err(), "its grant was revoked");
    assert!(waiting.await.is_err());

    assert_eq!(refused(&rig, RefusalReason::Closed), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_and_a_failed_open_are_no_refusals() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());
    let _held = rig.acquire().await;
    assert!(rig.pool.acquire().await.is_err());

    assert_eq!(rig.pool.status().refusals.total(), 0);
    assert!(rig.recorder.of("refused").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_warm_up_tells_how_many_were_opened_and_how_long_it_took() {
    let rig = Rig::new(|pool| pool.min_size(3));

    rig.pool.warm().await.unwrap();
    rig.pool.warm().await.unwrap();

    let expected = ["warmed 3 took=0ns true", "warmed 0 took=0ns true"];
    assert_eq!(rig.recorder.of("warmed"), expected);
}

#[tokio::test(start_paused = true)]
async fn a_warm_up_that_fails_tells_that_it_is_not_complete() {
    for warm_up in [WarmUp::Required, WarmUp::BestEffort] {
        let rig = Rig::new(|pool| pool.warm_up(warm_up));
        rig.backend.once(Call::Open, Gate::Fail);

        let _ = rig.pool.warm().await;
        settle().await;

        assert_eq!(rig.recorder.of("warmed"), ["warmed 0 took=0ns false"]);
    }
}
