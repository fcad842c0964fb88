//! How busy this program is while it measures. A program that has no time left is the limit itself,
//! and says nothing about the server.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::clock::now;

/// A program that is busy for more than this part of the time is the limit. The rest is lost when
/// its threads go to sleep and wake up.
const LIMIT: f64 = 0.85;

/// Measures from the moment at which it is made.
#[derive(Debug)]
pub(super) struct Client {
    busy: Duration,
    started: Instant,
}

impl Client {
    pub(super) fn start() -> Self {
        Self {
            busy: busy(),
            started: now(),
        }
    }

    /// Returns which part of the time of its threads was used, from 0 to 1.
    pub(super) fn part(&self) -> f64 {
        let threads = Handle::current().metrics().num_workers() as f64;
        let all = self.started.elapsed().as_secs_f64() * threads;
        let used = busy().saturating_sub(self.busy).as_secs_f64();
        (used / all.max(1e-9)).min(1.0)
    }
}

/// Returns for how long the threads that run tasks were busy. A thread that has work and gets no
/// processor counts as busy, because it cannot do more either.
fn busy() -> Duration {
    let metrics = Handle::current().metrics();
    (0..metrics.num_workers())
        .map(|thread| metrics.worker_total_busy_duration(thread))
        .sum()
}

/// Returns a sentence if the program was the limit when it used this part of its time.
pub(super) fn remark(part: f64) -> Option<String> {
    (part >= LIMIT).then(|| {
        format!(
            "this program was busy for {:.0} % of the time, so it was the limit, and the server may \
             take more connections: run it on more processors or on another machine, or measure \
             longer statements by `--sql`",
            part * 100.0
        )
    })
}

#[cfg(test)]
mod tests;
