//! A pool of one thread. It takes part in S1, S3 and S7, on the runtime with one thread.

use std::hint::black_box;
use std::time::Duration;

use cenote::local::{LocalLease, LocalPool};
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local, yield_now};
use tokio::time::sleep;

use crate::harness::backend::Backend;
use crate::harness::clock::{kept_waiting, now, processor_time};
use crate::harness::contender::Contender;
use crate::harness::peer::Kind;
use crate::harness::runtime::Runtime;
use crate::harness::scenarios::trips::{Load, Pause, Took};

use crate::subject::{Cenote, Things};

/// The other scenarios want pools that threads share.
pub(crate) const CONTENDER: Contender = Contender {
    name: "cenote-local",
    kind: Kind::Local,
    trips: round,
    bare_trips: bare,
    ..Contender::new::<Cenote>()
};

fn round(_: Runtime, load: Load, trips: u32) -> Took {
    run(async move {
        let pool = full(load.size).await;
        play(&pool, load, trips.min(64)).await;

        let (waited, used, started) = (kept_waiting(), processor_time(), now());
        play(&pool, load, trips).await;
        let (wall, processors) = (started.elapsed(), processor_time() - used);
        // The system counts the wait of a thread only when the thread runs again.
        sleep(Duration::from_millis(1)).await;
        Took {
            wall,
            processors,
            kept_waiting: kept_waiting()
                .unwrap_or_default()
                .saturating_sub(waited.unwrap_or_default()),
        }
    })
}

fn bare(trips: u32) {
    run(async move {
        let pool = full(16).await;
        travel(&pool, Pause::Never, 64).await;
        travel(&pool, Pause::Never, trips).await;
    });
}

/// Runs `work` in a local task, as the other pools run theirs in a task.
fn run<T: 'static>(work: impl Future<Output = T> + 'static) -> T {
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime can be made");
    let set = LocalSet::new();
    let done = set.block_on(&runtime, async { spawn_local(work).await });
    done.expect("a task that travels does not panic")
}

async fn full(size: usize) -> LocalPool<Things> {
    let pool = LocalPool::builder(Things(Backend::default())).max_size(size);
    let pool = pool.build().expect("the setup is in range");
    let mut leases = Vec::with_capacity(size);
    for _ in 0..size {
        leases.push(acquire(&pool).await);
    }
    drop(leases);
    sleep(Duration::from_millis(1)).await;
    pool
}

async fn play(pool: &LocalPool<Things>, load: Load, trips: u32) {
    if load.tasks == 1 {
        return travel(pool, load.pause, trips).await;
    }
    let tasks: Vec<_> = (0..load.tasks)
        .map(|_| {
            let pool = pool.clone();
            spawn_local(async move { travel(&pool, load.pause, trips).await })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task that travels does not panic");
    }
}

async fn travel(pool: &LocalPool<Things>, pause: Pause, trips: u32) {
    for trip in 0..trips {
        let lease = acquire(pool).await;
        black_box(&lease);
        match pause {
            Pause::Never => {}
            Pause::NowAndThen => {
                drop(lease);
                if trip % 8 == 7 {
                    yield_now().await;
                }
            }
            Pause::Holding => yield_now().await,
        }
    }
}

async fn acquire(pool: &LocalPool<Things>) -> LocalLease<Things> {
    pool.acquire().await.expect("an acquire succeeds")
}
