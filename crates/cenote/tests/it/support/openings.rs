//! An observer that records when each open began.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cenote::Observer;
use cenote::event::Opening;
use cenote_testkit::clock::now;

#[derive(Default)]
pub(crate) struct Openings(Mutex<Vec<Instant>>);

impl Openings {
    pub(crate) fn times(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time between each open and the next.
    pub(crate) fn gaps(&self) -> Vec<Duration> {
        self.times().windows(2).map(|two| two[1] - two[0]).collect()
    }
}

impl Observer for Openings {
    fn opening(&self, _: &Opening<'_>) {
        self.times().push(now());
    }
}
