//! A strategy in a pool: which reports and questions it gets, when, and that its verdicts count.

use std::time::Duration;

use cenote::AcquireError;
use cenote::breaker::{Breaker, BreakerState, ConsecutiveFailures, Recovery, Verdict};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

use crate::support::scribe::{Method, Scribe};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_strategy_trips_the_breaker_and_waiters_are_told() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);
    let mut held = rig.acquire().await;
    let waiting = rig.wait();
    scribe.with(|notes| notes.on_failure = Some(Verdict::Deactivate));

    held.broken = true;
    drop(held);

    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
    assert!(matches!(waiting.await, Err(AcquireError::Unavailable(_))));
}

#[tokio::test(start_paused = true)]
async fn a_strategy_hears_of_every_return() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);

    for _ in 0..5 {
        drop(rig.acquire().await);
    }

    let told = scribe.with(|notes| notes.reports.clone());
    assert_eq!(told, [(BreakerState::Active, None); 5]);
}

#[tokio::test(start_paused = true)]
async fn a_strategy_is_asked_when_the_breaker_becomes_inactive_and_again_exactly_when_it_wanted() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);
    drop(rig.acquire().await);
    scribe.with(|notes| notes.recovery = Some(Recovery::After(7 * SECOND)));

    rig.pool.breaker().trip();
    advance(6 * SECOND).await;
    assert_eq!(scribe.asked(), [Duration::ZERO]);
    advance(SECOND + Duration::from_millis(1)).await;
    assert_eq!(scribe.asked().len(), 2);
    tokio::time::sleep(22 * SECOND).await;

    let asked: Vec<_> = scribe.asked().iter().map(Duration::as_secs).collect();
    assert_eq!(asked, [0, 7, 14, 21, 28]);
    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
}

#[tokio::test(start_paused = true)]
async fn after_no_time_at_all_is_now() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);
    drop(rig.acquire().await);
    scribe.with(|notes| notes.recovery = Some(Recovery::After(Duration::ZERO)));

    rig.pool.breaker().trip();
    settle().await;

    assert_eq!(rig.pool.breaker().state(), BreakerState::Recovering);
}

#[tokio::test(start_paused = true)]
async fn whatever_a_strategy_does_is_observed() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);
    scribe.with(|notes| {
        notes.on_failure = Some(Verdict::Deactivate);
        notes.on_success = Some(Verdict::Activate);
        notes.recovery = Some(Recovery::Now);
    });

    rig.acquire().await.broken = true;
    settle().await;
    drop(rig.acquire().await);

    assert_eq!(
        rig.recorder.of("breaker_changed"),
        [
            "breaker_changed active inactive",
            "breaker_changed inactive recovering",
            "breaker_changed recovering active",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_strategy_is_not_asked_unless_the_breaker_is_inactive() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);
    drop(rig.acquire().await);
    advance(100 * SECOND).await;
    rig.pool.breaker().probe();
    advance(100 * SECOND).await;

    assert!(scribe.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_strategy_is_asked_while_upkeep_is_paused_and_no_caller_comes() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);
    drop(rig.acquire().await);
    rig.pool.pause_upkeep();
    scribe.with(|notes| notes.recovery = Some(Recovery::After(7 * SECOND)));
    rig.pool.breaker().trip();
    settle().await;
    scribe.with(|notes| notes.recovery = Some(Recovery::Now));

    tokio::time::sleep(8 * SECOND).await;

    assert_eq!(rig.pool.breaker().state(), BreakerState::Recovering);
}

#[tokio::test(start_paused = true)]
async fn unavailable_says_how_long_until_the_strategy_is_asked_again() {
    let scribe = Scribe::default();
    let rig = Rig::new(|pool| pool.name("orders").breaker(scribe.clone()));
    drop(rig.acquire().await);
    scribe.with(|notes| notes.recovery = Some(Recovery::After(7 * SECOND)));
    rig.pool.breaker().trip();
    advance(3 * SECOND).await;

    let refused = rig.pool.acquire().await.unwrap_err();

    assert!(matches!(
        refused,
        AcquireError::Unavailable(ref told) if told.retry_after == Some(4 * SECOND)
    ));
    assert_eq!(
        refused.to_string(),
        "pool `orders` is unavailable: its breaker tripped 3.0s ago, retry after 4.0s"
    );
}

#[tokio::test(start_paused = true)]
async fn waiters_are_not_told_to_come_back_at_once() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);
    let held = rig.acquire().await;
    let pool = rig.pool.clone();
    let waiting = tokio::spawn(async move { pool.acquire().await.err() });
    settle().await;

    rig.pool.breaker().trip();

    let told = [waiting.await.unwrap(), rig.pool.acquire().await.err()];
    for told in told {
        match told {
            Some(AcquireError::Unavailable(told)) => {
                assert_ne!(told.retry_after, Some(Duration::ZERO));
            }
            other => panic!("{other:?}"),
        }
    }
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_good_probe_makes_the_breaker_active_and_serves_all_waiters() {
    let scribe = Scribe::default();
    let rig = scribe.rig(4);
    scribe.with(|notes| notes.on_success = Some(Verdict::Activate));
    rig.pool.breaker().probe();
    let probe = rig.acquire().await;
    let waiting: Vec<_> = (0..4).map(|_| rig.wait()).collect();

    drop(probe);

    assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
    let mut leases = Vec::new();
    for waiting in waiting {
        leases.push(waiting.await.unwrap());
    }
    assert_eq!(rig.pool.status().in_use, 4);
}

#[tokio::test(start_paused = true)]
async fn a_bad_probe_makes_the_breaker_inactive_again_and_tells_the_waiters() {
    let scribe = Scribe::default();
    let rig = scribe.rig(4);
    scribe.with(|notes| notes.on_failure = Some(Verdict::Deactivate));
    rig.pool.breaker().probe();
    let mut probe = rig.acquire().await;
    let waiting: Vec<_> = (0..2).map(|_| rig.wait()).collect();

    probe.broken = true;
    drop(probe);

    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
    for waiting in waiting {
        assert!(matches!(waiting.await, Err(AcquireError::Unavailable(_))));
    }
    assert_eq!(rig.pool.status().in_use, 0);
    assert_eq!(scribe.asked().len(), 0);
    settle().await;
    assert_eq!(scribe.asked().len(), 1, "asked anew");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_cannot_be_opened_makes_the_breaker_inactive_again() {
    let strategy = ConsecutiveFailures::new(100).recover_after(SECOND, SECOND);
    let rig = Rig::new(|pool| pool.max_size(4).breaker(strategy));
    rig.backend.always(Call::Open, Gate::Fail);
    rig.pool.breaker().probe();

    let refused = rig.pool.acquire().await;

    assert!(matches!(refused, Err(AcquireError::Open { .. })));
    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
    assert_eq!(rig.backend.calls(Call::Open), 1);
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_comes_back_is_used_again_by_itself() {
    let strategy = ConsecutiveFailures::new(3).recover_after(SECOND, 8 * SECOND);
    let rig = Rig::new(|pool| pool.max_size(2).breaker(strategy));
    rig.backend.always(Call::Open, Gate::Fail);
    for _ in 0..3 {
        assert!(rig.pool.acquire().await.is_err());
    }
    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
    for _ in 0..50 {
        tokio::time::sleep(SECOND / 2).await;
        assert!(rig.pool.acquire().await.is_err());
    }
    let tries = rig.backend.calls(Call::Open);
    assert!(tries < 20, "{tries} tries: the breaker spares the backend");
    rig.backend.heal();

    tokio::time::sleep(9 * SECOND).await;
    drop(rig.acquire().await);

    assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_panics_does_no_harm() {
    let scribe = Scribe::default();
    let rig = scribe.rig(2);
    scribe.with(|notes| notes.panics_in = Method::ALL);
    rig.backend.once(Call::Open, Gate::Fail);

    assert!(rig.pool.acquire().await.is_err());
    let mut lease = rig.acquire().await;
    drop(rig.acquire().await);
    lease.broken = true;
    drop(lease);
    assert_eq!(rig.pool.breaker().state(), BreakerState::Active);
    rig.pool.breaker().trip();
    tokio::time::sleep(Duration::from_millis(2_500)).await;

    let asked: Vec<_> = scribe.asked().iter().map(Duration::as_secs).collect();
    assert_eq!(asked, [0, 1, 2], "asked again in a second");
    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_beyond_the_end_of_time_is_never() {
    let scribe = Scribe::default();
    let rig = scribe.rig(1);
    scribe.with(|notes| notes.recovery = Some(Recovery::After(Duration::MAX)));
    drop(rig.acquire().await);

    rig.pool.breaker().trip();
    tokio::time::sleep(3600 * SECOND).await;

    assert_eq!(scribe.asked().len(), 1);
    rig.pool.breaker().reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_strategy_is_told_the_state_at_the_time_of_the_report() {
    let scribe = Scribe::default();
    let rig = scribe.rig(3);
    let leases = [
        rig.acquire().await,
        rig.acquire().await,
        rig.acquire().await,
    ];
    let set = [Breaker::reset as fn(&_), Breaker::trip, Breaker::probe];

    for (lease, set) in leases.into_iter().zip(set) {
        set(&rig.pool.breaker());
        drop(lease);
    }
    let told_of_recovery = scribe.with(|notes| notes.reports.len()) == 3;
    drop(rig.acquire().await);

    assert!(
        !told_of_recovery,
        "what was lent before says nothing about now"
    );
    let states: Vec<_> = scribe.with(|notes| notes.reports.iter().map(|told| told.0).collect());
    assert_eq!(
        states,
        [
            BreakerState::Active,
            BreakerState::Inactive,
            BreakerState::Recovering
        ]
    );
}
