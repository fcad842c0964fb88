//! S5: a thousand acquires at once on an exhausted pool, each with a limit of one millisecond. It
//! measures the cost of a timeout, and how late it is.

use std::time::Duration;

use crate::harness::clock::{now, processor_time};
use crate::harness::peer::{Peer, Setup};
use crate::harness::results::Figure;
use crate::harness::runtime::{Runtime, Work, together};
use crate::harness::stats::{median, percentile};

const TASKS: usize = 1_000;
const SIZE: usize = 4;
const LIMIT: Duration = Duration::from_millis(1);

/// Plays one thousand of them. Panics if one of them is served.
pub fn round<P: Peer>(runtime: Runtime) -> Vec<Figure> {
    runtime.run(async move {
        let setup = Setup {
            acquire_timeout: Some(LIMIT),
            ..Setup::of_size(SIZE)
        };
        let pool = P::build(&setup).await;
        let mut held = Vec::with_capacity(SIZE);
        while held.len() < SIZE {
            // On a busy machine the limit of the whole pool may end this acquire too.
            held.extend(pool.acquire_within(LIMIT).await);
        }

        let used = processor_time();
        let late = all_give_up(&pool).await;
        let used = processor_time() - used;

        vec![
            ("cpu µs each", used.as_secs_f64() * 1e6 / TASKS as f64),
            ("late p50 ms", median(&late).unwrap_or(f64::NAN)),
            ("late p99 ms", percentile(&late, 0.99).unwrap_or(f64::NAN)),
        ]
    })
}

/// Returns how late each of them was, in milliseconds.
async fn all_give_up<P: Peer>(pool: &P) -> Vec<f64> {
    let callers = (0..TASKS).map(|_| -> Work<f64> {
        let pool = pool.clone();
        Box::pin(async move {
            let asked = now();
            let served = pool.acquire_within(LIMIT).await.is_some();
            assert!(!served, "an exhausted pool lent something");
            asked.elapsed().saturating_sub(LIMIT).as_secs_f64() * 1e3
        })
    });
    together(callers.collect()).await
}
