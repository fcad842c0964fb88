//! The scenarios that count trips. A trip acquires a resource and gives it back.

use std::hint::black_box;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::sleep;

use crate::harness::clock::{kept_waiting, now, processor_time};
use crate::harness::peer::{Peer, Setup};
use crate::harness::runtime::Runtime;

/// The size of the pool, and what its tasks do.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The size of the pool.
    pub size: usize,
    /// How many tasks use it at the same time.
    pub tasks: usize,
    /// When a task lets other tasks run.
    pub pause: Pause,
}

/// When a task lets other tasks run.
#[derive(Clone, Copy, Debug)]
pub enum Pause {
    /// Only when it must wait.
    Never,
    /// After every eighth trip, holding nothing.
    NowAndThen,
    /// On every trip, while it holds the resource.
    Holding,
}

/// The time of a round.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// Wall time.
    pub wall: Duration,
    /// Processor time.
    pub processors: Duration,
    /// How long its threads were ready to run while other threads ran.
    pub kept_waiting: Duration,
}

/// Plays so many trips by each task on a new, warm pool, and returns the time of all together.
pub fn round<P: Peer>(runtime: Runtime, load: Load, trips: u32) -> Took {
    runtime.run(async move {
        let pool = P::build(&Setup::of_size(load.size)).await;
        fill(&pool, load.size).await;
        play(&pool, load, trips.min(64)).await;
        runtime.wake_all().await;

        let (waited, used, started) = (kept_waiting(), processor_time(), now());
        play(&pool, load, trips).await;
        let (wall, processors) = (started.elapsed(), processor_time() - used);
        // The system counts the wait of a thread only when the thread runs again.
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

/// S7: plays only the trips of S1 on a warm pool, so that a tool that counts its instructions
/// counts those of the trips.
pub fn bare<P: Peer>(trips: u32) {
    Runtime::CurrentThread.run(async move {
        let pool = P::build(&Setup::of_size(16)).await;
        fill(&pool, 16).await;
        travel(&pool, Pause::Never, 64).await;
        travel(&pool, Pause::Never, trips).await;
    });
}

/// Opens as many resources as the pool may, and leaves them idle.
pub async fn fill<P: Peer>(pool: &P, size: usize) {
    let mut guards = Vec::with_capacity(size);
    for _ in 0..size {
        guards.push(pool.acquire().await);
    }
    drop(guards);
    // Some peers give back in a task of their own.
    sleep(Duration::from_millis(1)).await;
}

/// Plays so many trips by each task.
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
