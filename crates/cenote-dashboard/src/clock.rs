//! The clocks of the page: the time of day, and the time that has passed.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Returns the milliseconds since 1970, as browsers count them.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this times the samples of a page"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
