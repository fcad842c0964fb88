//! The report of a measurement, as text and as data.

use std::time::Duration;

use cenote::Status;
use serde::Serialize;

use super::buckets::{buckets, show};
use super::figures::Figures;
use crate::args::BenchArgs;
use crate::out::{short_time, thousands};
use crate::target::Target;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) url: String,
    /// `closed` or `open`.
    #[serde(rename = "loop")]
    pub(super) kind: &'static str,
    pub(super) max_size: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    callers: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<u32>,
    seconds: f64,
    pub(super) operations: u64,
    pub(super) per_second: f64,
    pub(super) failed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_error: Option<String>,
    /// Operations that were not begun, because too many were under way.
    skipped: u64,
    /// Milliseconds by percentile.
    pub(super) latency_ms: Vec<(&'static str, f64)>,
    /// How long a connection was in use on average, in milliseconds.
    use_ms: f64,
    /// The part of all acquires that had to wait, in percent.
    waited_percent: f64,
}

const QUANTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("max", 1.0),
];

impl Report {
    pub(super) fn new(
        target: &Target,
        args: &BenchArgs,
        callers: usize,
        figures: &Figures,
        before: &Status,
        after: &Status,
    ) -> Self {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let released = after.released.saturating_sub(before.released).max(1);
        let used = after.held_time.saturating_sub(before.held_time);
        let asked = |status: &Status| status.acquired + status.timed_out;
        let asked = asked(after).saturating_sub(asked(before)).max(1);
        let waited = after.waited.saturating_sub(before.waited);
        Self {
            url: target.shown(),
            kind: if args.rate.is_some() {
                "open"
            } else {
                "closed"
            },
            max_size: args.max_size,
            callers: args.rate.is_none().then_some(callers),
            rate: args.rate,
            seconds: figures.took.as_secs_f64(),
            operations: figures.times.len(),
            per_second: figures.per_second(),
            failed: figures.failed,
            first_error: figures.first_error.clone(),
            skipped: figures.skipped,
            latency_ms: QUANTILES
                .map(|(name, at)| (name, millis(figures.quantile(at))))
                .to_vec(),
            use_ms: millis(used) / released as f64,
            waited_percent: 100.0 * waited as f64 / asked as f64,
        }
    }

    /// Returns one line about what was measured.
    pub(super) fn title(&self) -> String {
        let load = match (self.callers, self.rate) {
            (Some(callers), _) => format!("closed loop of {callers} callers"),
            (None, rate) => format!(
                "open loop, {} per second",
                thousands(rate.unwrap_or(0).into())
            ),
        };
        format!("{}: {load}, max_size {}", self.url, self.max_size)
    }

    /// Returns lines with a name and a value.
    pub(super) fn rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = vec![
            ("operations", thousands(self.operations)),
            ("per second", thousands(self.per_second as u64)),
            ("failed", thousands(self.failed)),
        ];
        if self.skipped > 0 {
            rows.push(("not begun", thousands(self.skipped)));
        }
        let time = |millis: f64| short_time(Duration::from_secs_f64(millis / 1e3));
        rows.extend(
            self.latency_ms
                .iter()
                .map(|&(name, millis)| (name, time(millis))),
        );
        rows.push(("use of a connection", time(self.use_ms)));
        rows.push((
            "acquires that waited",
            format!("{:.1} %", self.waited_percent),
        ));
        rows
    }

    pub(super) fn to_text(&self, figures: &Figures) -> String {
        let mut text = format!("{}\n\n", self.title());
        for (name, value) in self.rows() {
            text += &format!("  {name:<22}{value:>12}\n");
        }
        if let Some(error) = &self.first_error {
            text += &format!("\n  the first error: {error}\n");
        }
        text.push('\n');
        text + &show(&buckets(&figures.times))
    }
}
