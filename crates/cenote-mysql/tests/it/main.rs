//! The driver on real servers.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod ambient;
mod building;
mod cancelled;
mod classes;
mod conforms;
mod credentials;
mod hygiene;
mod lost;
mod panics;
mod rig;
mod silence;
mod tls;
mod transactions;
mod used;

use std::time::Duration;

use tokio::time::sleep;

/// A real server needs milliseconds; this is enough on a busy machine.
const TRIES: usize = 6000;

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
