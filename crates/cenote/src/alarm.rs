//! The alarm: one for all pools, which wakes whoever has waited long enough to look again.
//!
//! A timer for each who waits would cost more than the rest of the wait, and nearly all are never needed. So who waits tells the ledger when
//! to be woken, the ledger sets the alarm only if it is not set for sooner, and in a busy pool that is once a second.

#[cfg(cenote_model)]
mod model;
#[cfg(not(cenote_model))]
mod thread;

use std::sync::Arc;
use std::time::Duration;

#[cfg(cenote_model)]
pub(crate) use model::{drop_elsewhere, forget, rouse, set};
#[cfg(not(cenote_model))]
pub(crate) use thread::{drop_elsewhere, forget, rouse, set};

use crate::moment::Moment;

/// How late it goes off, so that what is due within this time is done together. About as exact as tokio's timers.
const PACE: Duration = Duration::from_millis(1);

/// Somebody who has set the alarm.
pub(crate) trait Alarmed: Send + Sync {
    /// The alarm that was set for `at` goes off. Answers with when it must go off next. All others wait for the end of this.
    fn alarm(self: Arc<Self>, at: Moment, now: Moment) -> Option<Moment>;
}
