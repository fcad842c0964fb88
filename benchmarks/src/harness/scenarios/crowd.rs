//! S4: a thousand tasks on ten resources, each held over one yield. It measures throughput,
//! fairness and waits.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::sleep;

use crate::harness::clock::now;
use crate::harness::peer::{Peer, Setup};
use crate::harness::results::Figure;
use crate::harness::runtime::{Runtime, Work, together};
use crate::harness::scenarios::trips::fill;
use crate::harness::stats::{Fairness, maximum, percentile};

const TASKS: usize = 1_000;
const SIZE: usize = 10;

/// Only every eighth trip is timed. Two readings of the clock on every trip would be a third of the
/// measured time.
const TIMED: usize = 8;

/// Watches the crowd for `lasts`.
pub fn round<P: Peer>(runtime: Runtime, lasts: Duration) -> Vec<Figure> {
    let (visits, took) = runtime.run(async move {
        let pool = P::build(&Setup::of_size(SIZE)).await;
        fill(&pool, SIZE).await;
        watch(pool, lasts).await
    });
    figures(&visits, took)
}

/// The result of one task.
struct Visit {
    trips: usize,
    /// The waits of the timed trips, in seconds.
    waits: Vec<f64>,
}

/// Returns the result of each task, and how long the crowd was watched.
async fn watch<P: Peer>(pool: P, lasts: Duration) -> (Vec<Visit>, Duration) {
    let over = Arc::new(AtomicBool::new(false));
    let began = now();
    let visitors = (0..TASKS).map(|nth| -> Work<Visit> {
        let (pool, over) = (pool.clone(), Arc::clone(&over));
        Box::pin(async move { visit(&pool, nth, &over).await })
    });
    let visitors = visitors.collect();
    let clock = tokio::spawn(async move {
        sleep(lasts).await;
        over.store(true, Ordering::Relaxed);
        began.elapsed()
    });
    let visits = together(visitors).await;
    (visits, clock.await.expect("a clock does not panic"))
}

/// Runs the `nth` task. Tasks do not time the same trips.
async fn visit<P: Peer>(pool: &P, nth: usize, over: &AtomicBool) -> Visit {
    let mut trips = 0;
    // There is room for all, so that a long list does not grow while other tasks are measured.
    let mut waits = Vec::with_capacity(4_096 / TIMED);
    loop {
        let asked = (trips + nth).is_multiple_of(TIMED).then(now);
        let guard = pool.acquire().await;
        if over.load(Ordering::Relaxed) {
            return Visit { trips, waits };
        }
        if let Some(asked) = asked {
            waits.push(asked.elapsed().as_secs_f64());
        }
        trips += 1;
        yield_now().await;
        drop(guard);
    }
}

fn figures(visits: &[Visit], took: Duration) -> Vec<Figure> {
    let trips: Vec<usize> = visits.iter().map(|visit| visit.trips).collect();
    let fairness = Fairness::of(&trips);
    let waits = visits.iter().flat_map(|visit| &visit.waits);
    let waits: Vec<f64> = waits.map(|wait| wait * 1e6).collect();
    let wait = |part| percentile(&waits, part).unwrap_or(f64::INFINITY);
    let all: usize = trips.iter().sum();
    vec![
        ("kops/s", all as f64 / took.as_secs_f64() / 1e3),
        ("max:min", fairness.max_to_min),
        ("starved", fairness.starved as f64),
        ("wait p50 µs", wait(0.5)),
        ("wait p99 µs", wait(0.99)),
        ("wait max µs", maximum(&waits).unwrap_or(f64::INFINITY)),
    ]
}
