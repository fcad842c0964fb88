//! Several pools with one breaker: one state, one strategy.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use cenote::breaker::{
    BreakerState, ConsecutiveFailures, Failed, Recovery, SharedBreaker, Strategy, Verdict,
};
use cenote::{AcquireError, Pool};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Backend, Call, Gate, GatedManager, Rig};

use crate::support::scribe::Scribe;

const SECOND: Duration = Duration::from_secs(1);

fn rigs(breaker: &SharedBreaker) -> [Rig; 3] {
    [(); 3].map(|()| Rig::new(|pool| pool.max_size(2).shared_breaker(breaker)))
}

fn states(rigs: &[Rig]) -> Vec<BreakerState> {
    rigs.iter().map(|rig| rig.pool.breaker().state()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_failure_in_one_pool_stops_all_and_tells_their_waiters() {
    let breaker = SharedBreaker::new(ConsecutiveFailures::new(1));
    let rigs = rigs(&breaker);
    let held = (rigs[1].acquire().await, rigs[1].acquire().await);
    let waiting = rigs[1].wait();
    rigs[0].backend.once(Call::Open, Gate::Fail);

    drop(rigs[0].pool.acquire().await.unwrap_err());

    assert_eq!(states(&rigs), [BreakerState::Inactive; 3]);
    assert_eq!(breaker.state(), BreakerState::Inactive);
    assert!(matches!(waiting.await, Err(AcquireError::Unavailable(_))));
    let refused = rigs[2].pool.acquire().await;
    assert!(matches!(refused, Err(AcquireError::Unavailable(_))));
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn the_first_pool_that_proves_the_backend_alive_makes_all_active() {
    let strategy = ConsecutiveFailures::new(1).recover_after(SECOND, SECOND);
    let breaker = SharedBreaker::new(strategy);
    let rigs = rigs(&breaker);
    for rig in &rigs {
        drop(rig.acquire().await);
        rig.backend.always(Call::Open, Gate::Hang);
    }
    rigs[1].backend.heal();
    breaker.trip();
    assert_eq!(states(&rigs), [BreakerState::Inactive; 3]);

    advance(2 * SECOND).await;

    assert_eq!(states(&rigs), [BreakerState::Active; 3]);
    // By now the hung opens have timed out.
    advance(11 * SECOND).await;
    for rig in &rigs {
        breaker.reset();
        rig.assert_full_service().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_by_hand_on_any_pool_or_on_the_breaker_is_for_all() {
    let breaker = SharedBreaker::new(Scribe::default());
    let rigs = rigs(&breaker);

    rigs[2].pool.breaker().trip();
    assert_eq!(states(&rigs), [BreakerState::Inactive; 3]);
    breaker.probe();
    assert_eq!(states(&rigs), [BreakerState::Recovering; 3]);
    rigs[0].pool.breaker().reset();
    assert_eq!(states(&rigs), [BreakerState::Active; 3]);

    for rig in &rigs {
        let changes = rig.recorder.of("breaker_changed").len();
        assert_eq!(changes, 3, "each pool tells its own observers");
    }
}

#[tokio::test(start_paused = true)]
async fn the_strategy_is_told_of_the_returns_of_all_pools_and_can_be_replaced_for_all() {
    let scribe = Scribe::default();
    let breaker = SharedBreaker::new(scribe.clone());
    let rigs = rigs(&breaker);

    for rig in &rigs {
        drop(rig.acquire().await);
    }
    assert_eq!(scribe.take_reports(), [None; 3]);

    let second = Scribe::default();
    rigs[0].pool.breaker().set_strategy(second.clone());
    for rig in &rigs {
        drop(rig.acquire().await);
    }
    assert_eq!(
        (scribe.take_reports().len(), second.take_reports().len()),
        (0, 3)
    );

    rigs[1].pool.breaker().remove_strategy();
    drop(rigs[2].acquire().await);
    assert!(second.take_reports().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_replaces_another_is_asked_at_once_whether_to_recover() {
    let breaker = SharedBreaker::new(Scribe::default());
    let rigs = rigs(&breaker);
    drop(rigs[1].acquire().await);
    breaker.trip();
    settle().await;
    let second = Scribe::default();
    second.with(|notes| notes.recovery = Some(Recovery::Now));

    rigs[0].pool.breaker().set_strategy(second);
    settle().await;

    assert_eq!(states(&rigs), [BreakerState::Recovering; 3]);
}

/// A strategy that is slow: when it decides, the state was changed by hand already.
#[derive(Clone, Default)]
struct Overtaken(Arc<OnceLock<SharedBreaker>>);

impl Strategy for Overtaken {
    fn report_success(&self, _: BreakerState, _: Instant) -> Verdict {
        Verdict::Keep
    }

    fn report_failure(&self, _: BreakerState, _: &Failed<'_>, _: Instant) -> Verdict {
        if let Some(breaker) = self.0.get() {
            breaker.probe();
        }
        Verdict::Deactivate
    }

    fn should_recover(&self, _: Duration) -> Recovery {
        Recovery::After(3600 * SECOND)
    }
}

#[tokio::test(start_paused = true)]
async fn a_verdict_about_a_state_that_has_passed_changes_nothing() {
    let strategy = Overtaken::default();
    let breaker = SharedBreaker::new(strategy.clone());
    assert!(strategy.0.set(breaker.clone()).is_ok());
    let rigs = rigs(&breaker);
    rigs[0].backend.once(Call::Open, Gate::Fail);

    drop(rigs[0].pool.acquire().await.unwrap_err());

    assert_eq!(states(&rigs), [BreakerState::Recovering; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_built_later_has_the_state_of_the_others() {
    let breaker = SharedBreaker::new(Scribe::default());
    breaker.trip();

    let rig = Rig::new(|pool| pool.shared_breaker(&breaker));

    assert_eq!(rig.pool.breaker().state(), BreakerState::Inactive);
    breaker.reset();
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_breaker_keeps_no_pool_alive() {
    let breaker = SharedBreaker::new(Scribe::default());
    let backend = Arc::new(Backend::default());
    let build = || {
        let pool = Pool::builder(GatedManager(Arc::clone(&backend)));
        pool.shared_breaker(&breaker).build().unwrap()
    };
    let pools: Vec<_> = (0..100).map(|_| build()).collect();
    drop(pools[0].acquire().await.unwrap());

    drop(pools);
    settle().await;
    breaker.trip();

    assert_eq!(Arc::strong_count(&backend), 1, "managers are gone");
    drop(build());
}

/// Two threads change the state at the same time. All pools must agree afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pools_agree_whoever_changes_the_state() {
    let breaker = SharedBreaker::new(Scribe::default());
    let rigs = Arc::new(rigs(&breaker));
    let changes = |first: usize| {
        let rigs = Arc::clone(&rigs);
        move || {
            for nth in 0..2_000 {
                let own = rigs[(nth + first) % 3].pool.breaker();
                match (nth + first) % 4 {
                    0 => own.trip(),
                    1 => own.probe(),
                    _ => own.reset(),
                }
            }
        }
    };

    let threads = [0, 1].map(|first| tokio::task::spawn_blocking(changes(first)));
    for thread in threads {
        thread.await.unwrap();
    }

    assert_eq!(states(&*rigs), [breaker.state(); 3]);
    breaker.reset();
    for rig in &*rigs {
        rig.assert_full_service().await;
    }
}
