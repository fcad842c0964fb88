//! Run: cargo run -p cenote-examples --example worker_pools
//!
//! How do workers with a runtime each have a pool each, within one limit of the server?

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cenote::Pool;

/// The server allows so many connections.
const TOTAL: usize = 10;
const WORKERS: usize = 4;

/// The share of one worker. The first ones take what is left over.
fn share(worker: usize) -> usize {
    TOTAL / WORKERS + usize::from(worker < TOTAL % WORKERS)
}

/// One worker: a thread, a runtime and a pool of its own, so that no lock is shared.
fn work(worker: usize, open: Arc<AtomicUsize>) -> Result<u64, Box<dyn Error + Send + Sync>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let connect = move || {
        let number = open.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok::<_, std::io::Error>(number) }
    };
    let pool = Pool::from_fn(connect).name(format!("worker-{worker}"));
    let pool = pool.max_size(share(worker)).build()?;
    runtime.block_on(async {
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(
                    async move { pool.with(async |_| tokio::task::yield_now().await).await },
                )
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        Ok(pool.status().acquired)
    })
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let open = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let open = Arc::clone(&open);
            thread::spawn(move || work(worker, open))
        })
        .collect();
    for (worker, running) in workers.into_iter().enumerate() {
        let served = running.join().map_err(|_| "a worker panicked")??;
        println!(
            "worker {worker} served {served} requests with {} connections",
            share(worker)
        );
        assert_eq!(served, 50);
    }
    let open = open.load(Ordering::Relaxed);
    println!("{open} connections were opened, at most {TOTAL} are allowed");
    assert!(open <= TOTAL);
    Ok(())
}
