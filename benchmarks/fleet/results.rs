//! The results of a run as data, and the part of `README.md` that shows them.

use cenote_benchmarks::harness::report::table::{cell, markdown};
use cenote_benchmarks::harness::stats::{maximum, median, minimum};
use serde::{Deserialize, Serialize};

use crate::figures::{After, Figures};
use crate::play::{FULL_RATE, RATE};
use crate::pool::STATEMENT_SECONDS;
use crate::system::CAPACITY;

const BEGIN: &str = "<!-- fleet: written by `cargo xtask bench --fleet --write` -->";
const END: &str = "<!-- end of fleet -->";

/// A run and its circumstances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Results {
    /// The day of the run.
    pub(crate) date: String,
    /// The machine, the kernel and the compiler.
    pub(crate) machine: String,
    /// The load of the machine before and after.
    pub(crate) load: [String; 2],
    /// The sessions that all processes may have.
    pub(crate) capacity: u32,
    /// Requests per second of the busy process, and of one that asks for more than the capacity.
    pub(crate) rate: f64,
    pub(crate) full_rate: f64,
    /// How long a statement holds its session.
    pub(crate) statement_seconds: f64,
    /// The length of a stretch.
    pub(crate) stretch_seconds: f64,
    /// In the order of the table.
    pub(crate) systems: Vec<Figures>,
}

impl Results {
    /// Returns results without systems.
    pub(crate) fn new(date: String, machine: String, load: String, stretch_seconds: f64) -> Self {
        Self {
            date,
            machine,
            load: [load, String::new()],
            capacity: CAPACITY,
            rate: RATE,
            full_rate: FULL_RATE,
            statement_seconds: STATEMENT_SECONDS,
            stretch_seconds,
            systems: Vec::new(),
        }
    }

    /// Returns the results for machines, with a line for each system.
    pub(crate) fn to_json(&self) -> Result<String, serde_json::Error> {
        let lines = self.systems.iter().map(serde_json::to_string);
        let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
        let mut run = serde_json::to_value(self)?;
        run["systems"] = serde_json::json!([]);
        let systems = format!("\"systems\": [\n{}\n  ]", lines.join(",\n"));
        Ok(format!("{run:#}\n").replace("\"systems\": []", &systems))
    }

    /// Returns what stands between the marks.
    pub(crate) fn to_markdown(&self) -> String {
        let [before, after] = &self.load;
        format!(
            "{}, load {before} before and {after} after, stretches of {} s:\n{}.\n\n\
             ![plot](fleet/plot.svg)\n\n{}",
            self.date,
            self.stretch_seconds,
            self.machine,
            self.table()
        )
    }

    /// Returns a line for each system.
    pub(crate) fn table(&self) -> String {
        let header = [
            "system",
            "served %",
            "p50 ms",
            "p99 ms",
            "of capacity %",
            "most sessions",
            "counts over",
            "refused",
            "errors",
            "1st s after move %",
            "s to re-divide",
            "1st s after kill %",
            "s to recover",
            "load",
        ];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        rows.extend(self.systems.iter().map(|system| self.row(system)));
        markdown(&rows)
    }

    fn row(&self, system: &Figures) -> Vec<String> {
        let best = f64::from(self.capacity) / self.statement_seconds;
        let percent = |part: f64, whole: f64| format!("{:.1}", 100.0 * part / whole);
        let first_second = |all: &[After]| {
            let served: Vec<f64> = all.iter().map(|after| after.first_second).collect();
            median(&served).map_or(String::new(), |served| percent(served, self.rate))
        };
        vec![
            system.system.clone(),
            percent(system.goodput, self.rate),
            cell(system.p50_ms),
            cell(system.p99_ms),
            percent(system.full_goodput, best),
            system.seen.most.to_string(),
            format!("{} of {}", system.seen.over, system.seen.counts),
            system.refused.to_string(),
            system.failed.to_string(),
            first_second(&system.moves),
            seconds(&system.moves, system.share_is_fixed),
            first_second(&system.kills),
            seconds(&system.kills, system.share_is_fixed),
            system.load.clone(),
        ]
    }
}

/// Returns the median and, in brackets, the least and the most.
fn seconds(all: &[After], share_is_fixed: bool) -> String {
    let reached: Vec<f64> = all.iter().filter_map(|after| after.reached).collect();
    let never = all.len() - reached.len();
    let (Some(median), Some(least), Some(most)) =
        (median(&reached), minimum(&reached), maximum(&reached))
    else {
        let why = if share_is_fixed {
            ", the share is fixed"
        } else {
            ""
        };
        return format!("never{why}");
    };
    let text = format!("{median:.2} ({least:.2} to {most:.2})");
    match never {
        0 => text,
        _ => format!("{text}, {never} of {} never", all.len()),
    }
}

/// Returns the document with other words between the marks, or `None` if a mark is missing.
pub(crate) fn between_marks(document: &str, new: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", new.trim()))
}
