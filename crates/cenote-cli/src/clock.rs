//! The stopwatch of the program.

use std::time::Instant;

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this is a stopwatch"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
