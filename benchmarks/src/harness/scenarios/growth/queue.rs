//! Trips by a queue of waiters on ten resources.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::sleep;

use crate::harness::clock::now;
use crate::harness::peer::{Peer, Setup};
use crate::harness::results::Figure;
use crate::harness::runtime::Runtime;
use crate::harness::scenarios::trips::fill;

const SIZE: usize = 10;

/// Plays so many trips by all waiters together. All are queued when the clock starts, so that the
/// cost of starting tasks does not count.
pub fn round<P: Peer>(runtime: Runtime, waiters: usize, trips: usize) -> Vec<Figure> {
    runtime.run(async move {
        let pool = P::build(&Setup::of_size(SIZE)).await;
        fill(&pool, SIZE).await;
        let mut held = Vec::with_capacity(SIZE);
        for _ in 0..SIZE {
            held.push(pool.acquire().await);
        }
        let trips = (trips / waiters).max(2);
        let queued = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::with_capacity(waiters);
        for _ in 0..waiters {
            let (pool, queued) = (pool.clone(), Arc::clone(&queued));
            tasks.push(tokio::spawn(async move {
                queued.fetch_add(1, Ordering::Relaxed);
                for _ in 0..trips {
                    let _guard = pool.acquire().await;
                    yield_now().await;
                }
            }));
        }
        while queued.load(Ordering::Relaxed) < waiters {
            sleep(Duration::from_millis(1)).await;
        }
        runtime.wake_all().await;

        let started = now();
        drop(held);
        for task in tasks {
            task.await.expect("a waiter does not panic");
        }
        let nanos = started.elapsed().as_secs_f64() * 1e9;
        vec![("ns", nanos / (waiters * trips) as f64)]
    })
}
