//! A strategy that records its calls and answers as the test wants.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cenote::breaker::{BreakerState, Failed, Failure, Recovery, Strategy, Verdict};
use cenote::error::ErrorClass;
use cenote_testkit::Rig;

#[derive(Clone, Default)]
pub(crate) struct Scribe(Arc<Mutex<Notes>>);

#[derive(Default)]
pub(crate) struct Notes {
    /// Every report since the last [`Scribe::take_reports`]. `None` is a success.
    pub(crate) reports: Vec<(BreakerState, Option<Failure>)>,
    /// The class and the text of the error of every failure.
    pub(crate) errors: Vec<(ErrorClass, Option<String>)>,
    /// For how long the breaker had been inactive, at each question whether to recover.
    pub(crate) asked: Vec<Duration>,
    pub(crate) on_success: Option<Verdict>,
    pub(crate) on_failure: Option<Verdict>,
    pub(crate) recovery: Option<Recovery>,
    pub(crate) panics_in: &'static [Method],
}

/// A method of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Success,
    Failure,
    Recovery,
}

impl Method {
    pub(crate) const ALL: &'static [Self] = &[Self::Success, Self::Failure, Self::Recovery];
}

impl Scribe {
    /// Returns a rig whose breaker this strategy controls.
    pub(crate) fn rig(&self, max_size: usize) -> Rig {
        let scribe = self.clone();
        Rig::new(|pool| pool.max_size(max_size).self_probe(false).breaker(scribe))
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Notes) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn asked(&self) -> Vec<Duration> {
        self.with(|notes| notes.asked.clone())
    }

    /// Returns the failures that were reported since the last call, and `None` for each success.
    pub(crate) fn take_reports(&self) -> Vec<Option<Failure>> {
        self.with(|notes| notes.reports.drain(..).map(|report| report.1).collect())
    }

    fn record<T>(&self, method: Method, answer: impl FnOnce(&mut Notes) -> T) -> T {
        let (answer, panics) =
            self.with(|notes| (answer(notes), notes.panics_in.contains(&method)));
        assert!(!panics, "the strategy panicked");
        answer
    }
}

impl Strategy for Scribe {
    fn report_success(&self, state: BreakerState, _: Instant) -> Verdict {
        self.record(Method::Success, |notes| {
            notes.reports.push((state, None));
            notes.on_success.unwrap_or(Verdict::Keep)
        })
    }

    fn report_failure(&self, state: BreakerState, failed: &Failed<'_>, _: Instant) -> Verdict {
        self.record(Method::Failure, |notes| {
            notes.reports.push((state, Some(failed.kind)));
            let error = failed.error.map(ToString::to_string);
            notes.errors.push((failed.class, error));
            notes.on_failure.unwrap_or(Verdict::Keep)
        })
    }

    fn should_recover(&self, inactive_for: Duration) -> Recovery {
        self.record(Method::Recovery, |notes| {
            notes.asked.push(inactive_for);
            let later = Recovery::After(Duration::from_secs(3600));
            notes.recovery.unwrap_or(later)
        })
    }
}
