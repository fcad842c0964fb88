//! The managers on real servers: in use, misused, and under faults.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod blocking;
mod blocking_cancelled;
mod cancelled;
mod conforms;
mod faults;
mod load;
mod panics;
mod sessions;
mod transactions;
mod used;
mod watched;
mod world;

use std::path::Path;
use std::time::Duration;

use cenote::{Lease, Manager, Pool};
use cenote_diesel::Diesel;
use cenote_diesel::diesel_async::pooled_connection::PoolableConnection;
use tokio::time::{sleep, timeout};

/// A real server needs milliseconds; this is enough on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// A pool with generous limits.
fn pool<M: Manager + 'static>(manager: M, size: usize) -> Pool<M> {
    let pool = Pool::builder(manager).max_size(size).acquire_timeout(LIMIT);
    let pool = pool.open_timeout(LIMIT).check_timeout(LIMIT);
    let pool = pool.clean_timeout(LIMIT).close_timeout(LIMIT);
    pool.build().unwrap()
}

type Leased<C> = Lease<Diesel<C>>;

/// Ends a lease, takes the next one, and returns whether it has the same connection.
async fn next<C: PoolableConnection + 'static>(
    pool: &Pool<Diesel<C>>,
    lease: Leased<C>,
) -> (Leased<C>, bool) {
    let before = Lease::id(&lease);
    drop(lease);
    let lease = pool.acquire().await.unwrap();
    let is_same = Lease::id(&lease) == before;
    (lease, is_same)
}

/// Waits for the effect of another task or process.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = timeout(LIMIT, async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    });
    waiting.await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Returns how often this process has a file open.
fn times_open(file: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target == file).count()
}
