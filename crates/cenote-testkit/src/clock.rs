//! The fake clock: tokio's, paused, and turned by hand. For tests with `start_paused = true`.

use std::time::Duration;

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
