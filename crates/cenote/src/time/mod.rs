//! Time: moments as numbers, the clocks of a pool, the alarm, and back-off.

pub(crate) mod alarm;
mod backoff;
mod clock;
mod kernel;
mod moment;

pub(crate) use backoff::Backoff;
pub(crate) use clock::Clock;
pub(crate) use moment::{Moment, nanoseconds};

use crate::rt;

/// The time by tokio's clock, which is virtual where it is paused, as in tests.
pub(crate) fn now() -> Moment {
    Moment::of(rt::now())
}

/// Ends at `deadline`, or never. Works on any executor, and on a runtime without timers.
pub(crate) async fn sleep_until(deadline: Option<Moment>) {
    rt::sleep_until(deadline.map(Moment::instant)).await;
}
