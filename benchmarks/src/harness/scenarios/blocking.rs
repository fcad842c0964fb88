//! S11: callers that are threads, not tasks. Pools without a blocking call are driven by
//! `block_on`.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;

use tokio::runtime::Builder;

use crate::harness::clock::{kept_waiting, now, processor_time};
use crate::harness::peer::{Peer, Setup};
use crate::harness::runtime::keep_to;
use crate::harness::scenarios::trips::{Took, fill};

const SIZE: usize = 16;

/// Plays so many trips by each of so many threads.
pub fn round<P: Peer>(threads: usize, trips: u32) -> Took {
    // For the pool's own tasks. The callers are not its threads.
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("threads can be made");
    let pool = runtime.block_on(async {
        let pool = P::build(&Setup::of_size(SIZE)).await;
        fill(&pool, SIZE).await;
        pool
    });
    // The callers begin together, and live until all results are read.
    let (ready, done) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    let took = thread::scope(|scope| {
        for number in 0..threads {
            let (pool, handle) = (pool.clone(), runtime.handle());
            let (ready, done) = (&ready, &done);
            scope.spawn(move || {
                keep_to(number);
                // Some pools give back in a task.
                let _entered = handle.enter();
                ready.wait();
                for _ in 0..trips {
                    let guard = pool.acquire_blocking(handle);
                    black_box(&guard);
                }
                done.wait();
                ready.wait();
            });
        }
        let (waited, used) = (kept_waiting(), processor_time());
        ready.wait();
        let started = now();
        done.wait();
        let (wall, processors) = (started.elapsed(), processor_time() - used);
        let kept_waiting = kept_waiting()
            .unwrap_or_default()
            .saturating_sub(waited.unwrap_or_default());
        ready.wait();
        Took {
            wall,
            processors,
            kept_waiting,
        }
    });
    drop(pool);
    runtime.shutdown_background();
    took
}
