//! The scenarios that count trips: acquire and give back, over and over, by one task or by many.

use std::hint::black_box;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::sleep;

use crate::clock::{kept_waiting, now, processor_time};
use crate::peer::{Peer, Setup};
use crate::runtime::Runtime;

/// How many do what.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Of the pool.
    pub size: usize,
    /// That use it at once.
    pub tasks: usize,
    /// When they let others run.
    pub pause: Pause,
}

/// When a task lets others run.
#[derive(Clone, Copy, Debug)]
pub enum Pause {
    /// Only when it must wait.
    Never,
    /// After every eighth trip, with nothing in hand.
    NowAndThen,
    /// On every trip, resource in hand.
    Holding,
}

/// What a round took.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// On the wall.
    pub wall: Duration,
    /// Of the processors.
    pub processors: Duration,
    /// Ready to run, while others ran.
    pub kept_waiting: Duration,
}

/// So many trips by each task on a new pool, everything warm; what they took together.
pub fn round<P: Peer>(runtime: Runtime, load: Load, trips: u32) -> Took {
    runtime.run(async move {
        let pool = P::build(&Setup::of_size(load.size)).await;
        fill(&pool, load.size).await;
        play(&pool, load, trips.min(64)).await;
        runtime.wake_all().await;

        let (waited, used, started) = (kept_waiting(), processor_time(), now());
        play(&pool, load, trips).await;
        let (wall, processors) = (started.elapsed(), processor_time() - used);
        // A worker that is still kept from running is counted only once it runs.
        runtime.wake_all().await;
        Took {
            wall,
            processors,
            kept_waiting: kept_waiting()
                .unwrap_or_default()
                .saturating_sub(waited.unwrap_or_default()),
        }
    })
}

/// S7: nothing but the trips of S1 on a warm pool, so that whoever counts its instructions counts theirs.
pub fn bare<P: Peer>(trips: u32) {
    Runtime::CurrentThread.run(async move {
        let pool = P::build(&Setup::of_size(16)).await;
        fill(&pool, 16).await;
        travel(&pool, Pause::Never, 64).await;
        travel(&pool, Pause::Never, trips).await;
    });
}

/// Opens all there can be, and leaves them idle.
pub async fn fill<P: Peer>(pool: &P, size: usize) {
    let mut guards = Vec::with_capacity(size);
    for _ in 0..size {
        guards.push(pool.acquire().await);
    }
    drop(guards);
    // Some peers give back in a task of their own.
    sleep(Duration::from_millis(1)).await;
}

/// So many trips by each task.
pub async fn play<P: Peer>(pool: &P, load: Load, trips: u32) {
    if load.tasks == 1 {
        return travel(pool, load.pause, trips).await;
    }
    let mut tasks = Vec::with_capacity(load.tasks);
    for _ in 0..load.tasks {
        let pool = pool.clone();
        tasks.push(tokio::spawn(async move {
            travel(&pool, load.pause, trips).await
        }));
    }
    for task in tasks {
        task.await.expect("a task that travels does not panic");
    }
}

/// The measured loop.
async fn travel<P: Peer>(pool: &P, pause: Pause, trips: u32) {
    match pause {
        Pause::Never => {
            for _ in 0..trips {
                let guard = pool.acquire().await;
                black_box(&guard);
            }
        }
        Pause::NowAndThen => {
            for trip in 0..trips {
                let guard = pool.acquire().await;
                black_box(&guard);
                drop(guard);
                if trip % 8 == 7 {
                    yield_now().await;
                }
            }
        }
        Pause::Holding => {
            for _ in 0..trips {
                let guard = pool.acquire().await;
                black_box(&guard);
                yield_now().await;
            }
        }
    }
}
