//! Keeps the results in the tree: the figures, the chart, and the tables in README.md between their marks.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::effort::Effort;
use crate::report::{chart, machine, summary, table};
use crate::results::Line;
use crate::scenarios::ALL;

const BEGIN: &str = "<!-- results: written by `cargo xtask bench --write` -->";
const END: &str = "<!-- end of results -->";

/// A run and its circumstances.
#[derive(Debug)]
pub struct Run {
    /// When.
    pub date: String,
    /// On what.
    pub machine: String,
    /// How busy that was before and after.
    pub load: [String; 2],
    /// How much was done.
    pub effort: Effort,
    /// All that was measured.
    pub lines: Vec<Line>,
}

impl Run {
    /// For machines. What is infinite becomes `null`.
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

    /// Writes `results.json` and `chart.svg` to that folder, the tables to its `README.md`, and the summary to that of the folder above.
    pub fn write(&self, folder: &Path) -> Result<(), String> {
        let said = |error| format!("{}: {error}", folder.display());
        put(&folder.join("README.md"), &self.to_markdown())?;
        put(&folder.join("../README.md"), &self.in_short("benchmarks/"))?;
        fs::write(folder.join("results.json"), self.to_json()).map_err(said)?;
        let caption = format!("{}, {}", self.date, self.machine);
        fs::write(folder.join("chart.svg"), chart::svg(&self.lines, &caption)).map_err(said)
    }

    /// When and on what, the chart, which lies in `folder`, and the summary.
    fn in_short(&self, folder: &str) -> String {
        let [before, after] = &self.load;
        let quick = if self.effort.quick {
            ", a quick run"
        } else {
            ""
        };
        format!(
            "{}, {}, load {before} before and {after} after{quick}.\n\n![chart]({folder}chart.svg)\n\n{}\n",
            self.date,
            self.machine,
            summary::summary(&self.lines)
        )
    }

    fn to_markdown(&self) -> String {
        let mut text = self.in_short("");
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

/// A run that begins now.
pub fn begin(effort: Effort) -> Run {
    Run {
        date: machine::today(),
        machine: machine::describe(),
        load: [machine::load(), String::new()],
        effort,
        lines: Vec::new(),
    }
}

/// Puts it between the marks of that file.
fn put(file: &Path, new: &str) -> Result<(), String> {
    let said = |error| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(said)?;
    // A name like `Mutex<VecDeque>` is no tag.
    let text = between_marks(&text, &new.replace('<', "\\<"))
        .ok_or_else(|| format!("{}: the marks of the results are missing", file.display()))?;
    fs::write(file, text).map_err(said)
}

/// The text with something else between the marks. `None` if one of them is missing.
pub(super) fn between_marks(text: &str, new: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", new.trim()))
}
