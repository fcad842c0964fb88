//! S6: a storm of cancellations. Tasks drop acquires after a few polls or a moment, whatever they
//! were about to get. Patient waiters beside them must be served after the storm. Every slot must
//! still be there. At no time may there be more resources than slots.

#[cfg(test)]
mod tests;

use std::time::Duration;

use tokio::task::{JoinHandle, yield_now};
use tokio::time::{sleep, timeout, timeout_at};

use crate::harness::backend::Backend;
use crate::harness::peer::{Peer, Setup};
use crate::harness::results::Figure;
use crate::harness::runtime::{Runtime, Work, together};

const TASKS: u64 = 64;
const TURNS: usize = 200;
const SIZE: usize = 8;
const CONNECT: Duration = Duration::from_millis(1);
/// How many tasks never cancel. They wait for each other even when the storm is over.
const PATIENT: usize = 2 * SIZE;
/// The time before the patient tasks come.
const LULL: Duration = Duration::from_millis(5);
/// The time for work that was cut off to end.
const CALM: Duration = Duration::from_millis(50);
/// After this long a slot is lost, or a waiter is stuck.
const LOST: Duration = Duration::from_secs(1);

/// Counts that must be zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Slots that cannot be acquired any more.
    pub lost: usize,
    /// Waiters that are never served, though the pool is idle.
    pub stuck: usize,
    /// Resources beyond the size of the pool, at the worst moment.
    pub over: usize,
}

/// Plays one storm.
pub fn round<P: Peer>(runtime: Runtime, seed: u64) -> Vec<Figure> {
    let backend = Backend::new(CONNECT);
    let setup = Setup {
        backend: backend.clone(),
        ..Setup::of_size(SIZE)
    };
    let verdict = runtime.run(weather::<P>(setup, seed));
    vec![
        ("lost slots", verdict.lost as f64),
        ("stuck waiters", verdict.stuck as f64),
        ("over max", verdict.over as f64),
        ("connects", backend.census().begun() as f64),
    ]
}

async fn weather<P: Peer>(setup: Setup, seed: u64) -> Verdict {
    let pool = P::build(&setup).await;
    let tasks = (0..TASKS).map(|task| -> Work<()> {
        let random = fastrand::Rng::with_seed(seed.wrapping_mul(TASKS) + task);
        Box::pin(rage(pool.clone(), random))
    });
    let patient = (0..PATIENT).map(|_| -> Work<()> { Box::pin(wait(pool.clone())) });
    let patient: Vec<_> = patient.map(tokio::spawn).collect();
    together(tasks.collect()).await;
    let stuck = stuck(patient).await;
    sleep(CALM).await;
    Verdict {
        lost: lost(&pool).await,
        stuck,
        over: setup.backend.census().peak().saturating_sub(SIZE),
    }
}

/// Cuts acquires short, and holds leases over a few yields.
async fn rage<P: Peer>(pool: P, mut random: fastrand::Rng) {
    for _ in 0..TURNS {
        let patience = random.usize(..4);
        let guard = if random.bool() {
            let moment = Duration::from_micros(random.u64(..2_000));
            timeout(moment, pool.acquire()).await.ok()
        } else {
            tokio::select! {
                biased;
                guard = pool.acquire() => Some(guard),
                () = yields(patience) => None,
            }
        };
        if guard.is_some() {
            yields(patience).await;
        }
    }
}

async fn yields(count: usize) {
    for _ in 0..count {
        yield_now().await;
    }
}

async fn wait<P: Peer>(pool: P) {
    // Acquires before this are also cut off in the middle of a connect.
    sleep(LULL).await;
    for _ in 0..TURNS {
        let guard = pool.acquire().await;
        yield_now().await;
        drop(guard);
    }
}

async fn stuck(patient: Vec<JoinHandle<()>>) -> usize {
    let mut stuck = 0;
    let end = sleep(LOST).deadline();
    for mut task in patient {
        if timeout_at(end, &mut task).await.is_err() {
            stuck += 1;
            task.abort();
        }
    }
    stuck
}

async fn lost<P: Peer>(pool: &P) -> usize {
    let mut held = Vec::with_capacity(SIZE);
    for _ in 0..SIZE {
        match timeout(LOST, pool.acquire()).await {
            Ok(guard) => held.push(guard),
            Err(_) => break,
        }
    }
    SIZE - held.len()
}
