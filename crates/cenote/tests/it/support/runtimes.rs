//! Runtimes, and the clock of the real world.

use std::time::Instant;

use tokio::runtime::{Builder, Runtime};

/// A runtime that runs only inside `block_on`.
pub(crate) fn single() -> Runtime {
    let built = Builder::new_current_thread().enable_all().build();
    built.expect("a runtime can be started")
}

/// A runtime of one thread whose clock is paused.
pub(crate) fn paused() -> Runtime {
    let mut builder = Builder::new_current_thread();
    let built = builder.enable_all().start_paused(true).build();
    built.expect("a runtime can be started")
}

/// A runtime with one worker thread. It runs also outside `block_on`.
pub(crate) fn threaded() -> Runtime {
    with_workers(1)
}

pub(crate) fn with_workers(count: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let built = builder.worker_threads(count).enable_all().build();
    built.expect("a runtime can be started")
}

/// Returns the real time, for tests without a paused clock.
#[expect(clippy::disallowed_methods, reason = "these tests measure real time")]
pub(crate) fn real_now() -> Instant {
    Instant::now()
}
