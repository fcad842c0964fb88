//! Writes the results into the tree: the figures, the chart, and the tables between their marks in
//! README.md.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::effort::Effort;
use crate::harness::report::{chart, machine, summary, table};
use crate::harness::results::Line;
use crate::harness::scenarios::ALL;

const BEGIN: &str = "<!-- results: written by `cargo xtask bench --write` -->";
const END: &str = "<!-- end of results -->";

/// A run and its circumstances.
#[derive(Debug)]
pub struct Run {
    /// The day of the run.
    pub date: String,
    /// The machine, the kernel and the compiler.
    pub machine: String,
    /// The load of the machine before and after.
    pub load: [String; 2],
    /// The length of the run.
    pub effort: Effort,
    /// All results.
    pub lines: Vec<Line>,
}

impl Run {
    /// Returns the run for machines. Infinite values become `null`.
    pub fn to_json(&self) -> String {
        let lines: Vec<Value> = self.lines.iter().map(Line::to_json).collect();
        let run = json!({
            "date": self.date,
            "machine": self.machine,
            "load": self.load,
            "seed": self.effort.seed,
            "quick": self.effort.quick,
            "lines": lines,
        });
        format!("{run:#}\n")
    }

    /// Writes `results.json` and `chart.svg` to that folder, the tables to its `README.md`, and the
    /// summary for users to the `README.md` of the folder above.
    pub fn write(&self, folder: &Path) -> Result<(), String> {
        let said = |error| format!("{}: {error}", folder.display());
        put(&folder.join("README.md"), &self.to_markdown())?;
        put(&folder.join("../README.md"), &self.for_users())?;
        fs::write(folder.join("results.json"), self.to_json()).map_err(said)?;
        let caption = format!("{}, {}", self.date, self.machine);
        fs::write(folder.join("chart.svg"), chart::svg(&self.lines, &caption)).map_err(said)
    }

    /// Returns the summary for users, and the date and machine below it.
    fn for_users(&self) -> String {
        let table = summary::for_users(&self.lines);
        format!("{table}\n{}:\n{}.\n", self.date, self.machine)
    }

    /// Returns the date, the machine, the chart and the summary.
    fn in_short(&self) -> String {
        let [before, after] = &self.load;
        let quick = if self.effort.quick {
            ", a quick run"
        } else {
            ""
        };
        format!(
            "{}, load {before} before and {after} after{quick}:\n{}.\n\n![chart](chart.svg)\n\n{}\n",
            self.date,
            self.machine,
            summary::summary(&self.lines)
        )
    }

    fn to_markdown(&self) -> String {
        let mut text = self.in_short();
        for scenario in ALL {
            let lines = self
                .lines
                .iter()
                .filter(|line| line.scenario == scenario.name);
            let lines: Vec<Line> = lines.cloned().collect();
            text.push_str(&table::tables(scenario, &lines));
        }
        text
    }
}

/// Begins a run.
pub fn begin(effort: Effort) -> Run {
    Run {
        date: machine::today(),
        machine: machine::describe(),
        load: [machine::load(), String::new()],
        effort,
        lines: Vec::new(),
    }
}

/// Replaces the text between the marks of that file.
fn put(file: &Path, new: &str) -> Result<(), String> {
    let said = |error| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(said)?;
    // A name like `Mutex<VecDeque>` is not an HTML tag.
    let text = between_marks(&text, &new.replace('<', "\\<"))
        .ok_or_else(|| format!("{}: the marks of the results are missing", file.display()))?;
    fs::write(file, text).map_err(said)
}

/// Returns the text with other words between the marks, or `None` if a mark is missing.
pub(super) fn between_marks(text: &str, new: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", new.trim()))
}
