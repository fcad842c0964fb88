//! What observers and the log are told about a wait.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::time::Duration;

use super::kind::{ErrorOf, Kind};
use super::waiting::{InQueue, Waiting};
use crate::error::AcquireError;
use crate::ledger::Ask;
use crate::log::{Log, WaitSpan};
use crate::rt::sync::Ordering;
use crate::time::Moment;
use crate::timed_out::TimedOut;

/// What few waiters need.
#[derive(Default)]
pub(super) struct Extras {
    /// Only if there is a log.
    span: WaitSpan,
    /// It was logged that this waiter is slow.
    told: bool,
    /// Only where the alarm cannot wake the waiter.
    pub(super) timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Extras {
    /// Extras for the log, if there is one.
    #[inline]
    pub(super) fn new(pool: &str, site: &'static Location<'static>) -> Option<Box<Self>> {
        Log::is_on().then(|| {
            Box::new(Self {
                span: WaitSpan::begin(pool, site),
                ..Self::default()
            })
        })
    }
}

impl<K: Kind> Waiting<'_, K> {
    /// Writes a line about a wait that takes long, once. In the caller's own poll, so that the line
    /// belongs to the caller's span, and a subscriber that blocks delays no other caller.
    #[cold]
    pub(super) fn tell_if_slow(&mut self, now: Moment) {
        let (shared, site, since) = (self.shared, self.site, self.begun.since);
        let place = self.place.as_mut();
        let extras = place.map(|place| place.extras.get_or_insert_default());
        let Some(extras) = extras.filter(|extras| !extras.told) else {
            return;
        };
        let is_slow = |after: Duration| now >= since + after;
        if shared.limits.slow_acquire.is_some_and(is_slow) {
            extras.told = true;
            let waited = now.saturating_duration_since(since);
            let facts = || shared.ledger().facts(now);
            extras.span.enter(|| {
                let write = |log: &Log| log.slow(&shared.name, site, waited, facts);
                shared.observers.write(write);
            });
        }
    }

    #[cold]
    pub(super) fn tell_of_refusal(&self, error: &AcquireError<ErrorOf<K>>) {
        let unqueued = self.begun.ask == Ask::Unqueued;
        let is_none = unqueued && matches!(error, AcquireError::Rejected { .. });
        if let Some(reason) = error.refusal().filter(|_| !is_none) {
            self.shared.observers.refused(self.site, reason);
        }
    }

    /// Raises the events of a timeout.
    #[cold]
    pub(super) fn tell_of_timeout(
        &self,
        timed_out: &TimedOut<ErrorOf<K>>,
        place: Option<&InQueue<K>>,
    ) {
        let observers = &self.shared.observers;
        if !observers.any() && !Log::is_on() {
            return;
        }
        let seen = &timed_out.seen;
        let circle = seen.circle_told.as_ref();
        if circle.is_some_and(|told| !told.swap(true, Ordering::AcqRel)) {
            observers.nested_acquire(self.site, &seen.circle);
        }
        observers.timed_out(self.site, timed_out.waited(), &seen.status);
        if let Some(extras) = place.and_then(|place| place.extras.as_ref()) {
            let leak_after = self.shared.limits.leak_after;
            let write = |log: &Log| log.acquire_timed_out(self.site, timed_out, leak_after);
            extras.span.enter(|| observers.write(write));
        }
    }
}
