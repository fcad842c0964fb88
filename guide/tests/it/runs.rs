//! Real runs of the pool on a virtual clock, which the charts show.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cenote::Builder;
use cenote::breaker::{BreakerState, ConsecutiveFailures};
use cenote_testkit::{Call, Gate, GatedManager, GatedPool, Rig};
use tokio::time::sleep;

use crate::chart::{Chart, Steps};

const BLUE: &str = "#2563eb";
const GREEN: &str = "#86efac";
const ORANGE: &str = "#f59e0b";
const RED: &str = "#dc2626";

/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// A rig whose random draws are the same in every run.
fn rig(build: impl FnOnce(Builder<GatedManager>) -> Builder<GatedManager>) -> Rig {
    fastrand::seed(7);
    Rig::new(|pool| build(pool.seed(7)))
}

/// Normal load, a second of a spike, normal load.
pub(crate) async fn spike() -> String {
    let rig = rig(|pool| pool.max_size(10));
    let open = Gate::Slow(Duration::from_millis(50));
    rig.backend.always(Call::Open, open);
    let pool = rig.pool.clone();
    tokio::spawn(async move {
        call_for(&pool, 2000, 40).await;
        call_for(&pool, 1000, 5).await;
        call_for(&pool, 1000, 40).await;
    });

    let (mut leased, mut idle, mut all, mut waiting) = (vec![], vec![], vec![], vec![]);
    for second in looks(4) {
        let seen = rig.pool.status();
        let [used, rest] = [seen.in_use, seen.idle].map(|count| count as f64);
        leased.push((second, used));
        idle.push((second, used + rest));
        all.push((second, used + rest + seen.opening as f64));
        waiting.push((second, seen.waiting as f64));
        sleep(LOOK).await;
    }

    let mut chart = Chart::new(4.0);
    let panel = chart.panel("resources of a pool of ten", 120.0, 10.0);
    for (steps, colour) in [(&all, ORANGE), (&idle, GREEN), (&leased, BLUE)] {
        chart.area(&panel, steps, colour);
    }
    let names = [("leased", BLUE), ("idle", GREEN), ("opening", ORANGE)];
    chart.legend(&panel, &names);
    let panel = chart.panel("callers that wait", 70.0, most(&waiting));
    chart.curve(&panel, &waiting, RED);
    chart.finish()
}

/// Callers that come one after the other, at a fixed pace, and hold a lease for 60 ms.
async fn call_for(pool: &GatedPool, length: u64, pace: u64) {
    for _ in 0..length / pace {
        let pool = pool.clone();
        tokio::spawn(async move {
            let lease = pool.acquire().await;
            sleep(Duration::from_millis(60)).await;
            drop(lease);
        });
        sleep(Duration::from_millis(pace)).await;
    }
}

/// A backend that does not answer from second 3 to second 9, and a pool with a breaker.
pub(crate) async fn outage() -> String {
    let [open, first, longest] = [400, 1000, 2000].map(Duration::from_millis);
    let breaker = ConsecutiveFailures::new(5).recover_after(first, longest);
    let rig = rig(|pool| pool.max_size(4).open_timeout(open).breaker(breaker));
    let counts = Arc::new([0, 0].map(AtomicU32::new));
    tokio::spawn(count_calls(rig.pool.clone(), Arc::clone(&counts)));

    let (mut served, mut failed, mut states) = (Steps::new(), Steps::new(), Vec::new());
    for (nth, second) in looks(14).enumerate() {
        match nth {
            300 => {
                rig.backend.always(Call::Open, Gate::Hang);
                rig.backend.always(Call::IsBroken, Gate::Fail);
            }
            900 => {
                rig.backend.heal();
                rig.backend.always(Call::Open, Gate::Slow(open / 4));
            }
            _ => {}
        }
        states.push((second, rig.pool.breaker().state()));
        if nth > 0 && nth % 25 == 0 {
            let [good, bad] = [0, 1].map(|kind| counts[kind].swap(0, Ordering::Relaxed));
            // What was counted belongs to the quarter of a second before.
            served.push((second - 0.25, f64::from(good) * 4.0));
            failed.push((second - 0.25, f64::from(bad) * 4.0));
        }
        sleep(LOOK).await;
    }

    let mut chart = Chart::new(14.0);
    let most = most(&served).max(most(&failed));
    let panel = chart.panel("acquires per second", 110.0, most);
    chart.band(&panel, (3.0, 9.0), "#f3f4f6");
    chart.curve(&panel, &served, BLUE);
    chart.curve(&panel, &failed, RED);
    let down = ("backend down", "#e5e7eb");
    chart.legend(&panel, &[("served", BLUE), ("failed", RED), down]);
    let panel = chart.strip("breaker");
    for (span, state) in spans(&states) {
        let colour = match state {
            BreakerState::Inactive => RED,
            BreakerState::Recovering => ORANGE,
            _ => GREEN,
        };
        chart.band(&panel, span, colour);
    }
    let names = [("active", GREEN), ("inactive", RED), ("recovering", ORANGE)];
    chart.legend(&panel, &names);
    chart.finish()
}

/// Forty callers a second, each counted as served or as failed.
async fn count_calls(pool: GatedPool, counts: Arc<[AtomicU32; 2]>) {
    loop {
        let (pool, counts) = (pool.clone(), Arc::clone(&counts));
        tokio::spawn(async move {
            let nth = usize::from(pool.acquire().await.is_err());
            counts[nth].fetch_add(1, Ordering::Relaxed);
        });
        sleep(Duration::from_millis(25)).await;
    }
}

/// The seconds at which a run is looked at.
fn looks(seconds: u32) -> impl Iterator<Item = f64> {
    (0..=seconds * 100).map(|nth| f64::from(nth) / 100.0)
}

fn most(steps: &Steps) -> f64 {
    let most = steps.iter().map(|step| step.1).fold(0.0, f64::max);
    (most / 10.0).ceil() * 10.0
}

/// Joins looks that saw the same state.
fn spans(states: &[(f64, BreakerState)]) -> Vec<((f64, f64), BreakerState)> {
    let mut spans: Vec<((f64, f64), BreakerState)> = Vec::new();
    for (second, state) in states {
        let second = *second;
        match spans.last_mut() {
            Some((span, last)) if last == state => span.1 = second,
            Some((span, _)) => {
                span.1 = second;
                spans.push(((second, second), *state));
            }
            None => spans.push(((second, second), *state)),
        }
    }
    spans
}
