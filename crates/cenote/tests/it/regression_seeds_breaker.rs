//! Defects of the circuit breaker of Async\Pool (AP) that are still open there, none of which happens here.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cenote::{AcquireError, BreakerState, Failure, Recovery, Strategy, Verdict};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};

/// Trips at the first failure, recovers when it was asked three times, and writes down what it hears.
#[derive(Default)]
struct Listener {
    asked: AtomicUsize,
    heard: Mutex<Vec<Failure>>,
}

struct Listening(Arc<Listener>);

impl Strategy for Listening {
    fn report_success(&self, state: BreakerState, _: Instant) -> Verdict {
        match state {
            BreakerState::Recovering => Verdict::Activate,
            _ => Verdict::Keep,
        }
    }

    fn report_failure(&self, _: BreakerState, failure: Failure, _: Instant) -> Verdict {
        let heard = &self.0.heard;
        heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(failure);
        Verdict::Deactivate
    }

    fn should_recover(&self, _: Duration) -> Recovery {
        match self.0.asked.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Recovery::After(Duration::from_secs(1)),
            _ => Recovery::Now,
        }
    }
}

fn listened() -> (Rig, Arc<Listener>) {
    let listener = Arc::new(Listener::default());
    let strategy = Listening(Arc::clone(&listener));
    let rig = Rig::new(|pool| pool.max_size(3).breaker(strategy));
    (rig, listener)
}

/// AP, open: `shouldRecover` was documented, and never called.
#[tokio::test(start_paused = true)]
async fn the_strategy_was_never_asked_whether_to_recover() {
    let (rig, listener) = listened();

    rig.pool.deactivate();
    drop(rig.pool.acquire().await.unwrap_err());
    advance(Duration::from_millis(1500)).await;
    assert_eq!(rig.pool.breaker_state(), BreakerState::Inactive);
    advance(Duration::from_secs(1)).await;

    assert_eq!(listener.asked.load(Ordering::Relaxed), 3);
    assert_eq!(rig.pool.breaker_state(), BreakerState::Recovering);
}

/// AP, open: while it was recovering the pool lent without limit.
#[tokio::test(start_paused = true)]
async fn a_recovering_pool_lent_everything() {
    let (rig, _) = listened();
    rig.pool.recover();

    let probe = rig.acquire().await;
    let mut others = [rig.wait(), rig.wait()];
    settle().await;

    assert!(others.iter_mut().all(|other| !other.is_served()));
    assert_eq!(rig.pool.status().in_use, 1);
    drop(probe);
    assert_eq!(rig.pool.breaker_state(), BreakerState::Active);
    let [one, other] = others;
    let both = (one.await.unwrap(), other.await.unwrap());
    assert_eq!(rig.pool.status().in_use, 2);
    drop(both);
    rig.assert_full_service().await;
}

/// AP, open: failed creates and failed healthchecks told the breaker nothing.
#[tokio::test(start_paused = true)]
async fn the_breaker_heard_of_returns_only() {
    let (rig, listener) = listened();
    let heard = || std::mem::take(&mut *listener.heard.lock().unwrap());

    rig.backend.once(Call::Open, Gate::Fail);
    rig.pool.acquire().await.unwrap_err();
    assert_eq!(heard(), [Failure::Open]);
    assert_eq!(rig.pool.breaker_state(), BreakerState::Inactive);
    rig.pool.activate();
    drop(rig.acquire().await);
    advance(Duration::from_secs(6)).await;
    rig.backend.once(Call::Check, Gate::Fail);
    let told = rig.pool.acquire().await;

    assert_eq!(heard(), [Failure::Check]);
    assert!(matches!(told, Err(AcquireError::Unavailable { .. })));
    rig.pool.activate();
    rig.assert_full_service().await;
}
