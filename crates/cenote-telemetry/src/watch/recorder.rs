//! The observer of every exporter. It records how long opens, waits and leases take. The other
//! figures come from the status of the pool.

use std::time::Duration;

use cenote::event::{Acquired, Observer, Opened, Released};

use crate::watch::figures::Time;

/// A distribution of times. Recording neither locks nor allocates in this crate.
pub(crate) trait Distribution: Send + Sync + 'static {
    fn record(&self, time: Duration);
}

#[derive(Debug)]
pub(crate) struct Recorder<D> {
    times: [D; Time::ALL.len()],
}

impl<D> Recorder<D> {
    pub(crate) fn new(make: impl Fn(Time) -> D) -> Self {
        Self {
            times: Time::ALL.map(make),
        }
    }

    pub(crate) fn of(&self, time: Time) -> &D {
        &self.times[time as usize]
    }
}

impl<D: Distribution> Observer for Recorder<D> {
    fn opened(&self, event: &Opened<'_>) {
        self.of(Time::Create).record(event.took);
    }

    fn acquired(&self, event: &Acquired<'_>) {
        self.of(Time::Wait).record(event.waited);
    }

    fn released(&self, event: &Released<'_>) {
        self.of(Time::Use).record(event.held);
    }
}
