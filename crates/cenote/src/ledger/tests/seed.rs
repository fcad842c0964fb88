//! How to replay a history.

use std::thread;

/// Says how to replay a history that failed.
pub(super) struct Seed(pub(super) u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("replay with CENOTE_SEED={}", self.0);
        }
    }
}
