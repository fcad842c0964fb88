//! What was measured.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::failure::{Failure, whole_story};

/// An hour. Longer times count as this one.
const LONGEST: u64 = 3_600_000_000_000;

#[derive(Debug)]
pub(crate) struct Figures {
    /// How long operations took, in nanoseconds. Those that failed are not among them.
    pub(crate) times: Histogram<u64>,
    pub(crate) failed: u64,
    pub(crate) first_error: Option<String>,
    /// Operations that were not begun, because too many were under way.
    pub(crate) skipped: u64,
    pub(crate) took: Duration,
}

impl Figures {
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self {
            // Two digits keep the histogram of a caller small.
            times: Histogram::new_with_max(LONGEST, 2)?,
            failed: 0,
            first_error: None,
            skipped: 0,
            took: Duration::ZERO,
        })
    }

    pub(crate) fn record(&mut self, time: Duration, result: Result<(), Failure>) {
        match result {
            Ok(()) => {
                let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                self.times.saturating_record(nanos);
            }
            Err(error) => {
                self.failed += 1;
                let first = &mut self.first_error;
                first.get_or_insert_with(|| whole_story(&*error));
            }
        }
    }

    pub(crate) fn add(&mut self, other: Self) -> Result<(), Failure> {
        self.times.add(&other.times)?;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.first_error = self.first_error.take().or(other.first_error);
        Ok(())
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.took.as_secs_f64().max(1e-9)
    }

    pub(crate) fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.times.value_at_quantile(quantile))
    }
}
