//! S4: a thousand tasks on ten resources, each held over one yield. Who is served, how often, and after which wait?

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use tokio::task::yield_now;

use crate::clock::now;
use crate::peer::{Peer, Setup};
use crate::results::Figure;
use crate::runtime::{Runtime, Work, together};
use crate::scenarios::trips::fill;
use crate::stats::{Fairness, maximum, percentile};

const TASKS: usize = 1_000;
const SIZE: usize = 10;

/// Watches them for that long.
pub fn round<P: Peer>(runtime: Runtime, lasts: Duration) -> Vec<Figure> {
    let waits = runtime.run(async move {
        let pool = P::build(&Setup::of_size(SIZE)).await;
        fill(&pool, SIZE).await;
        watch(pool, lasts).await
    });
    figures(&waits, lasts)
}

/// The waits of each task, in seconds.
async fn watch<P: Peer>(pool: P, lasts: Duration) -> Vec<Vec<f64>> {
    let end = now() + lasts;
    let visitors = (0..TASKS).map(|_| -> Work<Vec<f64>> { Box::pin(visit(pool.clone(), end)) });
    together(visitors.collect()).await
}

async fn visit<P: Peer>(pool: P, end: Instant) -> Vec<f64> {
    // Room for all, so that a long list does not grow while others are measured.
    let mut waits = Vec::with_capacity(4_096);
    let mut asked = now();
    while asked < end {
        let guard = pool.acquire().await;
        let got = now();
        if got >= end {
            break;
        }
        waits.push((got - asked).as_secs_f64());
        yield_now().await;
        drop(guard);
        asked = now();
    }
    waits
}

fn figures(waits: &[Vec<f64>], lasts: Duration) -> Vec<Figure> {
    let trips: Vec<usize> = waits.iter().map(Vec::len).collect();
    let fairness = Fairness::of(&trips);
    let waits: Vec<f64> = waits.iter().flatten().map(|wait| wait * 1e6).collect();
    let wait = |part| percentile(&waits, part).unwrap_or(f64::INFINITY);
    vec![
        ("kops/s", waits.len() as f64 / lasts.as_secs_f64() / 1e3),
        ("max:min", fairness.max_to_min),
        ("starved", fairness.starved as f64),
        ("wait p50 µs", wait(0.5)),
        ("wait p99 µs", wait(0.99)),
        ("wait max µs", maximum(&waits).unwrap_or(f64::INFINITY)),
    ]
}
