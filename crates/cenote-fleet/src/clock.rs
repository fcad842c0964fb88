//! The member's own clock. It never goes back, and no other clock is read.

use std::time::Duration;

use tokio::time::Instant;

/// Counts from its making.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { began: now() }
    }

    pub(crate) fn now(self) -> Duration {
        now() - self.began
    }

    pub(crate) fn at(self, time: Duration) -> Instant {
        self.began + time
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the core, and this is the one place"
)]
fn now() -> Instant {
    Instant::now()
}
