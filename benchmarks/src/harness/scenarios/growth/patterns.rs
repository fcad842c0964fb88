//! Trips on one pool, part of which is out, in three patterns, and on two such pools in turn.

#[cfg(test)]
mod tests;

use std::hint::{black_box, spin_loop};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tokio::task::yield_now;

use super::pools::{BATCH, Watch, in_turn};
use super::{Point, Stretch};
use crate::harness::clock::now;
use crate::harness::peer::{Peer, Setup};
use crate::harness::runtime::{Runtime, Work, together};
use crate::harness::scenarios::trips::fill;

/// Which resource a task gives back after it has taken one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    /// The resource that it has just taken.
    Same,
    /// The resource that is out for the longest time.
    Rotate,
    /// Any resource that is out.
    Random,
}

impl Pattern {
    const ALL: [(Self, &str); 3] = [
        (Self::Same, "same"),
        (Self::Rotate, "rotate"),
        (Self::Random, "random"),
    ];
}

/// Plays all patterns on one warm pool, with one task for each worker.
pub fn round<P: Peer>(runtime: Runtime, point: Point, lasts: Duration) -> Vec<Stretch> {
    runtime.run(async move {
        let tasks = match runtime {
            Runtime::CurrentThread => 1,
            Runtime::TwoWorkers => 2,
        };
        let out = point.out(tasks);
        let pool = P::build(&Setup::of_size(point.size)).await;
        fill(&pool, point.size).await;
        let start = Arc::new(Start::new(tasks));
        let travellers = (0..tasks).map(|nth| -> Work<Vec<Stretch>> {
            let (pool, start) = (pool.clone(), Arc::clone(&start));
            let share = out / tasks + usize::from(nth < out % tasks);
            Box::pin(async move { travels(&pool, share, nth as u64, &start, lasts).await })
        });
        let mut stretches = at_once(&together(travellers.collect()).await);
        if runtime == Runtime::CurrentThread {
            stretches.push(two_pools(pool, point, lasts).await);
        }
        stretches
    })
}

/// Runs one task. All tasks begin each pattern together.
async fn travels<P: Peer>(
    pool: &P,
    share: usize,
    seed: u64,
    start: &Start,
    lasts: Duration,
) -> Vec<Stretch> {
    let mut traveller = Traveller {
        pool,
        held: hold(pool, share).await,
        oldest: 0,
        random: Rng::with_seed(seed),
    };
    let mut stretches = Vec::with_capacity(Pattern::ALL.len());
    for (pattern, name) in Pattern::ALL {
        if pattern != Pattern::Same && share == 0 {
            continue;
        }
        // Every resource that is out changes once.
        traveller.travel(pattern, share.max(BATCH)).await;
        start.together(stretches.len() + 1).await;
        let mut watch = Watch::new(lasts);
        while watch.goes_on() {
            traveller.travel(pattern, BATCH).await;
        }
        stretches.push(watch.stretch(name));
    }
    stretches
}

/// A meeting of the tasks before a pattern.
struct Start {
    tasks: usize,
    arrived: AtomicUsize,
}

impl Start {
    fn new(tasks: usize) -> Self {
        let arrived = AtomicUsize::new(0);
        Self { tasks, arrived }
    }

    /// Waits for the `nth` meeting, counted from one. A task spins while it waits for the others,
    /// so that each task has a worker. It spins for a short time only, because another task may
    /// need this worker to get here.
    async fn together(&self, nth: usize) {
        const KEEP: Duration = Duration::from_micros(200);

        let all = nth * self.tasks;
        loop {
            self.arrived.fetch_add(1, Ordering::AcqRel);
            let came = now();
            while came.elapsed() < KEEP && self.arrived.load(Ordering::Acquire) < all {
                spin_loop();
            }
            let go_away = |arrived| (arrived < all).then(|| arrived - 1);
            let gone = self
                .arrived
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, go_away);
            if gone.is_err() {
                return;
            }
            yield_now().await;
        }
    }
}

struct Traveller<'a, P: Peer> {
    pool: &'a P,
    held: Vec<P::Guard<'a>>,
    oldest: usize,
    random: Rng,
}

impl<P: Peer> Traveller<'_, P> {
    async fn travel(&mut self, pattern: Pattern, trips: usize) {
        match pattern {
            Pattern::Same => {
                for _ in 0..trips {
                    let guard = self.pool.acquire().await;
                    black_box(&guard);
                }
            }
            Pattern::Rotate => {
                for _ in 0..trips {
                    let guard = self.pool.acquire().await;
                    black_box(&guard);
                    drop(mem::replace(&mut self.held[self.oldest], guard));
                    self.oldest += 1;
                    if self.oldest == self.held.len() {
                        self.oldest = 0;
                    }
                }
            }
            Pattern::Random => {
                for _ in 0..trips {
                    let guard = self.pool.acquire().await;
                    black_box(&guard);
                    let any = self.random.usize(..self.held.len());
                    drop(mem::replace(&mut self.held[any], guard));
                }
            }
        }
    }
}

async fn hold<P: Peer>(pool: &P, share: usize) -> Vec<P::Guard<'_>> {
    let mut held = Vec::with_capacity(share);
    for _ in 0..share {
        held.push(pool.acquire().await);
    }
    held
}

/// Combines the stretches that all tasks made at the same time into one.
fn at_once(each: &[Vec<Stretch>]) -> Vec<Stretch> {
    let first = each.first().into_iter().flatten().enumerate();
    let together = first.map(|(index, stretch)| {
        let all = each.iter().filter_map(|stretches| stretches.get(index));
        let rates: f64 = all.clone().map(|stretch| 1.0 / stretch.nanos).sum();
        Stretch {
            name: stretch.name,
            nanos: 1.0 / rates,
            noise: all.map(|stretch| stretch.noise).fold(0.0, f64::max),
        }
    });
    together.collect()
}

/// Fills another such pool and plays trips on the two in turn.
async fn two_pools<P: Peer>(pool: P, point: Point, lasts: Duration) -> Stretch {
    let other = P::build(&Setup::of_size(point.size)).await;
    fill(&other, point.size).await;
    let pools = [pool, other];
    let out = point.out(1);
    let _held = (hold(&pools[0], out).await, hold(&pools[1], out).await);
    in_turn(&pools, "two pools", lasts).await
}
