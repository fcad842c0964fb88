//! The clock that all processes of this machine share.

use rustix::time::{ClockId, clock_gettime};

/// Returns the seconds since the machine was started.
pub(crate) fn now() -> f64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
