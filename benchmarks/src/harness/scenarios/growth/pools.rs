//! Trips on many pools in turn, by one thread.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::Stretch;
use crate::harness::clock::{kept_waiting, now};
use crate::harness::peer::{Peer, Setup};
use crate::harness::runtime::Runtime;

/// The clock is read once per batch, so that its cost does not count.
pub(super) const BATCH: usize = 256;

const SIZE: usize = 10;

/// Plays so many pools with one resource in each.
pub fn round<P: Peer>(pools: usize, lasts: Duration) -> Vec<Stretch> {
    Runtime::CurrentThread.run(async move {
        let mut all = Vec::with_capacity(pools);
        for _ in 0..pools {
            all.push(P::build(&Setup::of_size(SIZE)).await);
        }
        visit(&all, all.len()).await;
        // Some peers give back in a task of their own.
        sleep(Duration::from_millis(1)).await;
        vec![in_turn(&all, "ns", lasts).await]
    })
}

/// Plays trips on all pools, one after another, again and again.
pub(super) async fn in_turn<P: Peer>(pools: &[P], name: &'static str, lasts: Duration) -> Stretch {
    // Whole tours use each pool equally often.
    let tours = BATCH.div_ceil(pools.len());
    visit(pools, tours * pools.len()).await;
    let mut watch = Watch {
        batch: tours * pools.len(),
        ..Watch::new(lasts)
    };
    while watch.goes_on() {
        visit(pools, watch.batch).await;
    }
    watch.stretch(name)
}

async fn visit<P: Peer>(pools: &[P], trips: usize) {
    for pool in pools.iter().cycle().take(trips) {
        let guard = pool.acquire().await;
        black_box(&guard);
    }
}

/// Counts batches of trips for some time.
pub(super) struct Watch {
    batch: usize,
    began: Instant,
    lasts: Duration,
    waited: Option<Duration>,
    batches: usize,
    took: Duration,
}

impl Watch {
    /// Starts the watch.
    pub(super) fn new(lasts: Duration) -> Self {
        let waited = kept_waiting();
        Self {
            batch: BATCH,
            began: now(),
            lasts,
            waited,
            batches: 0,
            took: Duration::ZERO,
        }
    }

    /// Returns whether there is time for one more batch.
    pub(super) fn goes_on(&mut self) -> bool {
        self.took = self.began.elapsed();
        let goes_on = self.batches == 0 || self.took < self.lasts;
        self.batches += usize::from(goes_on);
        goes_on
    }

    /// Returns the result.
    pub(super) fn stretch(self, name: &'static str) -> Stretch {
        let waited = kept_waiting().unwrap_or_default();
        let noise = waited.saturating_sub(self.waited.unwrap_or_default());
        let took = self.took.as_secs_f64();
        Stretch {
            name,
            nanos: took * 1e9 / (self.batches * self.batch) as f64,
            noise: noise.as_secs_f64() / took,
        }
    }
}
