//! The advice of a living pool.

use std::time::Duration;

use cenote::registry;
use cenote::status::AdviceKind;
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, GatedPool, Rig};

const SECOND: Duration = Duration::from_secs(1);

fn kinds(pool: &GatedPool) -> Vec<AdviceKind> {
    pool.advice().iter().map(|advice| advice.kind).collect()
}

#[tokio::test(start_paused = true)]
async fn failing_opens_are_told_with_their_error_until_one_succeeds() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());
    advance(2 * SECOND).await;

    let advice = rig.pool.advice();
    assert_eq!(advice[0].kind, AdviceKind::OpensFail);
    let text = advice[0].to_string();
    let start = "no open has succeeded for 2.0s: opening failed: ";
    assert!(text.starts_with(start), "{text}");
    rig.backend.heal();
    advance(60 * SECOND).await;
    assert_eq!(kinds(&rig.pool), []);
}

#[tokio::test(start_paused = true)]
async fn an_open_that_hangs_is_told() {
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Hang);
    let _waiting = rig.wait();
    settle().await;
    assert_eq!(kinds(&rig.pool), []);

    advance(2 * SECOND).await;

    assert_eq!(kinds(&rig.pool), [AdviceKind::OpensHang]);
}

#[tokio::test(start_paused = true)]
async fn a_circle_is_told_while_it_stands() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut waiting = Box::pin(rig.pool.acquire());
    let late = tokio::time::timeout(2 * SECOND, waiting.as_mut()).await;
    assert!(late.is_err(), "this task holds the only one");

    assert_eq!(kinds(&rig.pool), [AdviceKind::Nested, AdviceKind::Held]);
    drop((waiting, held));
    assert_eq!(kinds(&rig.pool), []);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_and_a_suspension_are_told() {
    let rig = Rig::with_max_size(1);
    rig.pool.breaker().trip();
    rig.pool.suspend();

    let expected = [AdviceKind::Breaker, AdviceKind::Suspended];
    assert_eq!(kinds(&rig.pool), expected);
    let mut all = registry::pools().into_iter();
    let any = all.find(|any| any.number() == rig.pool.number()).unwrap();
    assert_eq!(any.advice().unwrap(), rig.pool.advice());
}

#[tokio::test(start_paused = true)]
async fn the_load_is_that_of_the_time_since_the_look_before() {
    let rig = Rig::with_max_size(10);
    for _ in 0..100 {
        let lease = rig.acquire().await;
        advance(SECOND / 10).await;
        drop(lease);
    }
    let earlier = rig.pool.status();

    assert!(
        rig.pool.advice()[0]
            .text
            .starts_with("offered load 1.0: 10 are plenty")
    );
    advance(10 * SECOND).await;
    let since = rig.pool.advice_since(&earlier, 10 * SECOND);
    assert!(since.is_empty(), "no lease came back: {since:?}");
}
