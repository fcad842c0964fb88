//! The fake clock: tokio's, paused, and turned by hand. For tests with `start_paused = true`.

use std::future::Future;
use std::thread;
use std::time::{Duration, Instant};

/// More turns than any chain of tasks in these tests needs.
const TURNS: usize = 200;

/// Lets every task run until it has nothing left to do, without moving the clock.
///
/// # Cancel safety
/// Dropping it only stops it.
pub async fn settle() {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

/// Moves the clock by `step`, and lets everything that is due happen.
///
/// # Cancel safety
/// Dropped midway, the clock may have moved or not.
pub async fn advance(step: Duration) {
    settle().await;
    tokio::time::advance(step).await;
    settle().await;
}

/// The time on that clock.
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads the clock that it turns"
)]
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// What `future` comes to, and how long it took on that clock.
///
/// # Cancel safety
/// Dropping it drops `future`.
pub async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let started = now();
    let value = future.await;
    (value, now() - started)
}

/// Waits in real time, up to some seconds, for what other threads do.
///
/// # Panics
/// If it never holds.
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..5000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("never: {what}");
}
