//! The last minutes of a pool: a bounded list of samples.

use std::collections::VecDeque;
use std::time::Duration;

use cenote::Status;
use tokio::time::Instant;

use crate::clock::now;
use crate::histogram::Reading;
use crate::recorder::Recorder;
use crate::view::{HistoryView, SampleView, TimesHistoryView, TimesView};

/// A sample costs one look at each pool, so it is taken this seldom while no page is open.
pub(crate) const EVERY: Duration = Duration::from_secs(2);

/// Five minutes.
pub(crate) const MOST: usize = 150;

/// A whole status is kept with each of so many samples.
const MARK: usize = 15;

#[derive(Debug)]
pub(crate) struct History {
    samples: VecDeque<SampleView>,
    waits: Reading,
    uses: Reading,
    acquired: u64,
    /// Whole statuses, the oldest first, for advice about the last minutes.
    marks: VecDeque<(Instant, Status)>,
    since_mark: usize,
}

/// How much of a sample is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// For the list of all pools.
    Counts,
    /// With percentiles, for one pool.
    Times,
}

impl History {
    pub(crate) fn new(recorder: &Recorder, status: Status) -> Self {
        Self {
            samples: VecDeque::new(),
            waits: recorder.waits.read(),
            uses: recorder.uses.read(),
            acquired: status.acquired,
            marks: [(now(), status)].into(),
            since_mark: 0,
        }
    }

    /// Adds a sample. `passed` is the time since the one before.
    pub(crate) fn add(
        &mut self,
        status: &Status,
        recorder: &Recorder,
        time_ms: u64,
        passed: Duration,
    ) {
        let (waits, uses) = (recorder.waits.read(), recorder.uses.read());
        let acquired = status.acquired.saturating_sub(self.acquired);
        let sample = SampleView {
            time_ms,
            max_size: status.max_size,
            in_use: status.in_use,
            waiting: status.waiting,
            acquired_per_second: per_second(acquired, passed),
            times: Some(TimesView {
                wait_ms: waits.since(&self.waits),
                use_ms: uses.since(&self.uses),
            }),
        };
        (self.waits, self.uses, self.acquired) = (waits, uses, status.acquired);
        if self.samples.len() == MOST {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        self.mark(status);
    }

    fn mark(&mut self, status: &Status) {
        self.since_mark += 1;
        if self.since_mark == MARK {
            self.since_mark = 0;
            if self.marks.len() == MOST / MARK {
                self.marks.pop_front();
            }
            self.marks.push_back((now(), status.clone()));
        }
    }

    /// Returns the oldest status that is kept, and how long ago it was.
    pub(crate) fn earliest(&self) -> Option<(Status, Duration)> {
        let (at, status) = self.marks.front()?;
        Some((status.clone(), now() - *at))
    }

    pub(crate) fn last(&self, depth: Depth) -> Option<SampleView> {
        let mut last = self.samples.back().cloned()?;
        if depth == Depth::Counts {
            last.times = None;
        }
        Some(last)
    }

    pub(crate) fn view(&self, depth: Depth) -> HistoryView {
        let mut view = HistoryView {
            every_ms: u64::try_from(EVERY.as_millis()).unwrap_or(u64::MAX),
            times: (depth == Depth::Times).then(TimesHistoryView::default),
            ..HistoryView::default()
        };
        for sample in &self.samples {
            view.time_ms.push(sample.time_ms);
            view.max_size.push(sample.max_size);
            view.in_use.push(sample.in_use);
            view.waiting.push(sample.waiting);
            view.acquired_per_second.push(sample.acquired_per_second);
            if let (Some(columns), Some(times)) = (&mut view.times, &sample.times) {
                columns.wait_ms.push(times.wait_ms);
                columns.use_ms.push(times.use_ms);
            }
        }
        view
    }
}

/// Returns a rate with one decimal.
fn per_second(count: u64, passed: Duration) -> f64 {
    let seconds = passed.as_secs_f64().max(1e-3);
    (count as f64 / seconds * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests;
