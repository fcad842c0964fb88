//! The fake clock: tokio's clock, paused and advanced by hand. For tests with `start_paused =
//! true`.

use std::future::Future;
use std::thread;
use std::time::{Duration, Instant};

/// More turns than any chain of tasks in these tests needs.
const TURNS: usize = 200;

/// Lets every task run until it is pending or done, without moving the clock.
///
/// # Cancel safety
/// Dropping the future stops it. Nothing else happens.
pub async fn settle() {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

/// Moves the clock by `step` and lets every task run that is due by then.
///
/// # Cancel safety
/// If the future is dropped midway, the clock may or may not have moved.
pub async fn advance(step: Duration) {
    settle().await;
    tokio::time::advance(step).await;
    settle().await;
}

/// Returns the time on the fake clock.
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads the clock that it turns"
)]
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Returns the output of `future` and how long it took on the fake clock.
///
/// # Cancel safety
/// Dropping it drops `future`.
pub async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let started = now();
    let value = future.await;
    (value, now() - started)
}

/// Waits in real time, for up to some seconds, until `holds` returns true. For the effects of other
/// threads.
///
/// # Panics
/// If `holds` never returns true.
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..5000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("never: {what}");
}
