//! What is counted in one replay.

use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::failure::Failure;

/// A day. Longer waits count as this one.
const LONGEST: u64 = 24 * 3600 * 1_000_000_000;

#[derive(Debug)]
pub(super) struct Figures {
    /// How long the callers waited that got a lease, in nanoseconds.
    waits: Histogram<u64>,
    pub(super) timed_out: u64,
    pub(super) refused: u64,
    pub(super) opens: u64,
    leases: Area,
    resources: Area,
    lasted: Duration,
}

impl Figures {
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self {
            waits: Histogram::new_with_max(LONGEST, 3)?,
            timed_out: 0,
            refused: 0,
            opens: 0,
            leases: Area::default(),
            resources: Area::default(),
            lasted: Duration::ZERO,
        })
    }

    pub(super) fn granted(&mut self, now: Instant, waited: Duration) {
        self.leases.add(now, 1);
        let nanos = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        self.waits.saturating_record(nanos);
    }

    pub(super) fn returned(&mut self, now: Instant) {
        self.leases.add(now, -1);
    }

    pub(super) fn opened(&mut self, now: Instant) {
        self.opens += 1;
        self.resources.add(now, 1);
    }

    pub(super) fn closed(&mut self, now: Instant) {
        self.resources.add(now, -1);
    }

    pub(super) fn in_use(&self) -> i64 {
        self.leases.height
    }

    /// Forgets the past of the areas.
    pub(super) fn restart(&mut self, now: Instant) {
        self.leases.restart(now);
        self.resources.restart(now);
    }

    pub(super) fn end(&mut self, lasted: Duration, now: Instant) {
        self.leases.add(now, 0);
        self.resources.add(now, 0);
        self.lasted = lasted;
    }

    /// Returns how long this part of the callers waited at most.
    pub(super) fn wait(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.waits.value_at_quantile(quantile))
    }

    pub(super) fn mean_in_use(&self) -> f64 {
        self.leases.sum / self.lasted.as_secs_f64().max(1e-9)
    }

    pub(super) fn mean_idle(&self) -> f64 {
        let total = self.resources.sum / self.lasted.as_secs_f64().max(1e-9);
        (total - self.mean_in_use()).max(0.0)
    }
}

/// A number that changes, and its sum over time.
#[derive(Debug, Default)]
struct Area {
    height: i64,
    since: Option<Instant>,
    /// In seconds.
    sum: f64,
}

impl Area {
    fn add(&mut self, now: Instant, change: i64) {
        if let Some(since) = self.since {
            self.sum += self.height as f64 * (now - since).as_secs_f64();
        }
        self.since = Some(now);
        self.height += change;
    }

    fn restart(&mut self, now: Instant) {
        (self.since, self.sum) = (Some(now), 0.0);
    }
}
