//! The alarm: one for all pools. It goes off when the first deadline of a pool passes.
//!
//! A timer for each waiter would cost more than the rest of the wait, and nearly all are never
//! needed. So the ledger keeps the deadlines and sets the alarm only if it is not set for an
//! earlier one: in a busy pool that is once a second.

#[cfg(cenote_model)]
mod in_model;
#[cfg(not(cenote_model))]
mod on_thread;

use std::process;
use std::sync::Arc;
use std::time::Duration;

#[cfg(cenote_model)]
use in_model::set;
#[cfg(cenote_model)]
pub(crate) use in_model::{drop_elsewhere, forget};
#[cfg(not(cenote_model))]
use on_thread::set;
#[cfg(not(cenote_model))]
pub(crate) use on_thread::{drop_elsewhere, forget};

use crate::rt::sync::{AtomicBool, AtomicU32, Ordering};
use crate::time::Moment;

/// How late the alarm goes off, so that it goes off once for all deadlines within this time.
/// Tokio's timers are about as exact.
const PACE: Duration = Duration::from_millis(1);

/// A pool that has set the alarm.
pub(crate) trait Alarmed: Send + Sync {
    /// The alarm that was set for `at` goes off. Returns when it must go off next. All other pools
    /// wait for the end of this.
    fn alarm(self: Arc<Self>, at: Moment, now: Moment) -> Option<Moment>;
}

/// The alarm, as one pool sees it.
#[derive(Debug, Default)]
pub(crate) struct Alarming {
    /// Its thread could not be started.
    missing: AtomicBool,
    /// The process that set it last.
    process: AtomicU32,
}

/// The process number of an alarm that was never set. No process has it.
const NEVER_SET: u32 = 0;

impl Alarming {
    /// Sets the alarm. An earlier one stays set: the ledger knows. Where that is not possible,
    /// waiters need timers of their own.
    pub(crate) fn set<A: Alarmed + 'static>(&self, at: Moment, whose: &Arc<A>) {
        self.process.store(process::id(), Ordering::Relaxed);
        let is_set = set(at, whose);
        self.missing.store(!is_set, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_missing(&self) -> bool {
        self.missing.load(Ordering::Relaxed)
    }

    /// Returns whether this process is a fork of the one that set it. The alarm's thread does not
    /// survive a fork.
    pub(crate) fn has_forked(&self) -> bool {
        let process = self.process.load(Ordering::Relaxed);
        process != NEVER_SET && process != process::id()
    }
}
