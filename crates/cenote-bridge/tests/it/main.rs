//! The bridges: with managers that misbehave, and with published managers on real servers.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod bb8_postgres;
mod bb8_redis;
mod blocking;
mod contained;
mod customized;
mod deadpool_lapin;
mod deadpool_postgres;
mod deadpool_redis;
mod detached;
mod diesel_sqlite;
mod postgres;
mod r2d2_redis;
mod r2d2_sqlite;
mod redis_server;
mod threads;

use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

/// A real server needs milliseconds; this is enough on a busy machine.
const TRIES: usize = 2000;

/// Waits for the effect of another process.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..TRIES {
        if holds().await {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

/// Returns how often this process has a file open.
fn times_open(file: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target == file).count()
}
