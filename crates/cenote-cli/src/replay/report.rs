//! The report of a replay, as text and as data.

use std::time::Duration;

use cenote_telemetry::trace::{Outcome, Recorded, Stop};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::figures::Figures;
use super::load::Load;
use super::stretch::{NOISE, Stretch};
use crate::out::{Table, short_time, thousands};

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) pool: String,
    /// The size of the pool when the recording began.
    pub(super) recorded_max_size: usize,
    /// Sizes up to this one are firm. Larger ones have a band.
    pub(super) firm_up_to: usize,
    pub(super) seconds: f64,
    acquires: u64,
    /// What was recorded, to compare with the replay at the same size.
    recorded: Recording,
    /// The replay at the recorded size.
    replayed: Row,
    /// How leases get longer at worst.
    stretch: Stretch,
    pub(super) sizes: Vec<Size>,
    /// What the trace does not contain.
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Recording {
    wait_ms: Waits,
    timed_out: u64,
}

/// The result of one size. The worst case is there if the size is not firm.
#[derive(Debug, Serialize)]
pub(super) struct Size {
    pub(super) max_size: usize,
    pub(super) best: Row,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) worst: Option<Row>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Row {
    /// Milliseconds, of the callers that got a lease.
    pub(super) wait_ms: Waits,
    pub(super) timed_out: u64,
    refused: u64,
    opens: u64,
    /// Means over time.
    in_use: f64,
    idle: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Waits {
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Waits {
    fn new(wait: impl Fn(f64) -> Duration) -> Self {
        let [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1.0].map(|part| millis(wait(part)));
        Self { p50, p90, p99, max }
    }
}

impl Row {
    fn new(figures: &Figures) -> Self {
        Self {
            wait_ms: Waits::new(|quantile| figures.wait(quantile)),
            timed_out: figures.timed_out,
            refused: figures.refused,
            opens: figures.opens,
            in_use: figures.mean_in_use(),
            idle: figures.mean_idle(),
        }
    }

    fn cells(&self, size: String) -> [String; 9] {
        let Waits { p50, p90, p99, max } = self.wait_ms;
        let [p50, p90, p99, max] = [p50, p90, p99, max].map(shown);
        let lost = thousands(self.timed_out + self.refused);
        let opens = thousands(self.opens);
        let (in_use, idle) = (format!("{:.1}", self.in_use), format!("{:.1}", self.idle));
        [size, p50, p90, p99, max, lost, opens, in_use, idle]
    }
}

impl Report {
    pub(super) fn new(
        recorded: &Recorded,
        load: &Load,
        firm_up_to: usize,
        stretch: Stretch,
        own: &Figures,
        rows: &[(usize, Figures, Option<Figures>)],
    ) -> Self {
        Self {
            pool: recorded.config.name.clone().unwrap_or_default(),
            recorded_max_size: recorded.config.max_size,
            firm_up_to,
            seconds: load.lasted.as_secs_f64(),
            acquires: recorded.visits.len() as u64,
            recorded: Recording::of(recorded),
            replayed: Row::new(own),
            stretch,
            sizes: rows
                .iter()
                .map(|(max_size, best, worst)| Size {
                    max_size: *max_size,
                    best: Row::new(best),
                    worst: worst.as_ref().map(Row::new),
                })
                .collect(),
            notes: notes(recorded),
        }
    }

    pub(super) fn title(&self) -> String {
        format!(
            "{}: {} acquires in {}, recorded with `max_size` {}",
            self.pool,
            thousands(self.acquires),
            short_time(Duration::from_secs_f64(self.seconds)),
            self.recorded_max_size,
        )
    }

    pub(super) fn table(&self) -> Vec<[String; 9]> {
        let mut rows = Vec::new();
        for size in &self.sizes {
            let name = size.max_size.to_string();
            match &size.worst {
                None => rows.push(size.best.cells(name)),
                Some(worst) => {
                    rows.push(size.best.cells(format!("{name} at best")));
                    rows.push(worst.cells(format!("{name} at worst")));
                }
            }
        }
        rows
    }

    pub(super) fn to_text(&self) -> String {
        let mut table = Table::new(&TITLES);
        self.table().into_iter().for_each(|row| table.row(row));
        let lines: String = self
            .lines()
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        let title = self.title();
        let chart = self.chart();
        format!(
            "{title}\n\n{}\nwait p99 by `max_size`\n{chart}\n{lines}",
            table.show()
        )
    }

    /// A bar for each size: full up to the best case, light up to the worst.
    fn chart(&self) -> String {
        let most = self.longest();
        let width = |millis: f64| (millis / most.max(1e-9) * WIDEST).round() as usize;
        let mut text = String::new();
        for size in &self.sizes {
            let best = size.best.wait_ms.p99;
            let worst = size.worst.map_or(best, |row| row.wait_ms.p99).max(best);
            let (full, light) = (width(best), width(worst) - width(best));
            let bar = format!("{}{}", "█".repeat(full), "░".repeat(light));
            let (max_size, band) = (size.max_size, band(best, worst));
            text += format!("  {max_size:>5}  {bar} {band}").trim_end();
            text.push('\n');
        }
        text
    }

    /// Returns the longest wait of the chart, in milliseconds.
    pub(super) fn longest(&self) -> f64 {
        let all = self
            .sizes
            .iter()
            .flat_map(|size| [Some(size.best), size.worst]);
        all.flatten().map(|row| row.wait_ms.p99).fold(0.0, f64::max)
    }

    /// Returns what a reader must know about the numbers.
    pub(super) fn lines(&self) -> Vec<String> {
        let Stretch {
            sigma,
            kappa,
            measured,
        } = self.stretch;
        let mut lines = vec![format!(
            "Replayed with its own size, p50 and p99 are {} and {}; recorded were {} and {}.",
            shown(self.replayed.wait_ms.p50),
            shown(self.replayed.wait_ms.p99),
            shown(self.recorded.wait_ms.p50),
            shown(self.recorded.wait_ms.p99),
        )];
        if self.sizes.iter().any(|size| size.worst.is_none()) {
            lines.push(format!(
                "Sizes up to {} are firm: leases take as long as they were recorded.",
                self.firm_up_to
            ));
        }
        if self.sizes.iter().any(|size| size.worst.is_some()) {
            let noise = NOISE * 100.0;
            lines.push(format!(
                "Larger sizes are a band: at best leases take {noise:.0} % less time than recorded, \
                 at worst {noise:.0} % more, and get longer with use."
            ));
            lines.push(match measured {
                true => format!(
                    "How much longer is fitted to this trace: serial part {:.1} %, agreement \
                     {:.3} %.",
                    sigma * 100.0,
                    kappa * 100.0,
                ),
                false => "The trace does not show how much longer, so at worst the server is full \
                          already."
                    .to_owned(),
            });
        }
        lines.push("Callers come when they came, whatever they would have waited.".to_owned());
        lines.extend(self.notes.iter().cloned());
        lines
    }
}

impl Recording {
    fn of(recorded: &Recorded) -> Self {
        let mut waits = Histogram::<u64>::new_with_max(u64::MAX / 2, 3).ok();
        let mut timed_out = 0;
        for visit in &recorded.visits {
            match (visit.outcome, &mut waits) {
                (Outcome::TimedOut, _) => timed_out += 1,
                (_, Some(waits)) => {
                    let nanos = u64::try_from(visit.waited.as_nanos()).unwrap_or(u64::MAX);
                    waits.saturating_record(nanos);
                }
                (_, None) => {}
            }
        }
        let wait = |quantile| {
            let nanos = waits
                .as_ref()
                .map_or(0, |it| it.value_at_quantile(quantile));
            Duration::from_nanos(nanos)
        };
        Self {
            wait_ms: Waits::new(wait),
            timed_out,
        }
    }
}

/// The titles of the table, with `>` before those of numbers.
pub(super) const TITLES: [&str; 9] = [
    "max_size",
    ">wait p50",
    ">p90",
    ">p99",
    ">max",
    ">timed out",
    ">opens",
    ">in use",
    ">idle",
];

const WIDEST: f64 = 50.0;

/// Returns what the trace does not contain.
fn notes(recorded: &Recorded) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |count: u64, text: &str| {
        if count > 0 {
            notes.push(format!("{} {text}", thousands(count)));
        }
    };
    if let Some(end) = recorded.end {
        note(
            end.lost,
            "events were lost: they came too fast to be written.",
        );
        note(
            end.cancelled,
            "acquires were dropped while they waited, and are not played.",
        );
        note(
            end.refused,
            "acquires were refused at once, and are not played.",
        );
        if end.stop == Stop::Limit {
            notes.push("The recording ended early, at its limit of bytes.".to_owned());
        }
    } else {
        notes.push("The recording was cut short: it has no end.".to_owned());
    }
    if !recorded.resizes.is_empty() {
        notes.push("The pool was resized during the recording.".to_owned());
    }
    notes
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn shown(millis: f64) -> String {
    match millis {
        ..0.0005 => "0".to_owned(),
        _ => short_time(Duration::from_secs_f64(millis / 1e3)),
    }
}

/// Formats a time, or the two ends of a band.
pub(super) fn band(best: f64, worst: f64) -> String {
    match (shown(best), shown(worst)) {
        (best, worst) if best == worst => best,
        (best, worst) => format!("{best} to {worst}"),
    }
}
