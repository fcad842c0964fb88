//! Tables for people, in Markdown.

use std::fmt::Write;

use crate::harness::report::growth;
use crate::harness::results::{Line, ratio};
use crate::harness::scenarios::{Scenario, growth::NAME as GROWTH};

/// The pools that the others are compared with.
const BESIDE: &[&str] = &["deadpool", "floor: Mutex<VecDeque>", "floor: ArrayQueue"];

/// The pools that the others are compared with on real databases.
const BESIDE_SQL: &[&str] = &["sqlx", "deadpool"];

/// On real databases these figures are compared as well as the first one of a table.
const COMPARED_TOO: [&str; 3] = ["p99 µs", "read p99 µs", "write p99 µs"];

/// Counts whose ratios say nothing.
const NO_RATIO: [&str; 2] = ["lost slots", "attempt"];

/// Returns a heading and a table for each runtime. Runtimes that differ only in the number of tasks
/// share a table.
pub fn tables(scenario: &Scenario, lines: &[Line]) -> String {
    if scenario.name == GROWTH {
        return growth::tables(lines);
    }
    let mut places: Vec<&str> = lines.iter().map(|line| place(line).0).collect();
    places.dedup();
    let mut text = String::new();
    for runtime in places {
        let lines = lines.iter().filter(|line| place(line).0 == runtime);
        let lines: Vec<Line> = lines.cloned().collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "**{}**, {runtime}: {}\n",
            scenario.name, scenario.what
        );
        text.push_str(&table(&lines));
        text.push('\n');
    }
    text
}

/// Splits the runtime of this line into the place and the number of tasks, if it ends with one.
fn place(line: &Line) -> (&'static str, Option<&'static str>) {
    let parts = line.runtime.rsplit_once(", ");
    let tasks = |load: &'static str| {
        load.strip_suffix(" tasks")
            .or_else(|| load.strip_suffix(" task"))
    };
    match parts.map(|(place, load)| (place, tasks(load))) {
        Some((place, Some(tasks))) => (place, Some(tasks)),
        _ => (line.runtime, None),
    }
}

fn table(lines: &[Line]) -> String {
    let measured = lines.iter().filter_map(|line| line.outcome.as_ref().ok());
    let most = measured.max_by_key(|figures| figures.len());
    let mut names: Vec<&str> = most.into_iter().flatten().map(|(name, _)| *name).collect();
    if names.is_empty() {
        // Without any figure there must be room for the reason.
        names.push("");
    }
    let by_tasks = lines.iter().any(|line| place(line).1.is_some());
    let ratios = ratios(lines, &names, by_tasks);

    let mut header = vec!["pool".to_owned()];
    header.extend(by_tasks.then(|| "tasks".to_owned()));
    header.extend(names.iter().map(|&name| name.to_owned()));
    header.extend(ratios.iter().map(|ratio| ratio.heading.clone()));
    let mut rows = vec![header];
    for line in lines {
        let mut row = vec![line.pool.to_owned()];
        row.extend(place(line).1.map(str::to_owned));
        let figures = row.len();
        match &line.outcome {
            Ok(_) => row.extend(names.iter().map(|name| cell(line.figure(name)))),
            Err(trouble) => row.push(trouble.to_string()),
        }
        row.resize(figures + names.len(), String::new());
        row.extend(ratios.iter().map(|it| {
            let ratio = ratio(lines, line, it.figure, it.pool);
            ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"))
        }));
        rows.push(row);
    }
    markdown(&rows)
}

/// A column of ratios.
struct Ratio<'a> {
    heading: String,
    figure: &'a str,
    pool: &'static str,
}

fn ratios<'a>(lines: &[Line], names: &[&'a str], sql: bool) -> Vec<Ratio<'a>> {
    let beside = if sql { BESIDE_SQL } else { BESIDE };
    let there = |pool: &&&'static str| lines.iter().any(|line| line.pool == **pool);
    let beside: Vec<&'static str> = beside.iter().filter(there).copied().collect();
    let first = names.first().filter(|name| !NO_RATIO.contains(name));
    let other = names.iter().filter(|name| COMPARED_TOO.contains(name));
    let mut ratios = Vec::new();
    for (index, &figure) in first.into_iter().chain(other).enumerate() {
        let which = if index == 0 {
            ""
        } else {
            figure.trim_end_matches("µs")
        };
        ratios.extend(beside.iter().map(|&pool| Ratio {
            heading: format!("{which}× {}", pool.trim_start_matches("floor: ")),
            figure,
            pool,
        }));
    }
    ratios
}

/// Formats a value with three significant digits.
pub fn cell(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value.is_infinite() => "∞".into(),
        Some(value) if value >= 100.0 || value == value.trunc() => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

/// Formats rows of equal length as a table that is also legible as plain text. The first row is the
/// header.
pub fn markdown(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..rows[0].len()).filter_map(width).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            let _ = if column == 0 {
                write!(text, "| {cell}{pad} ")
            } else {
                write!(text, "| {pad}{cell} ")
            };
        }
        text.push_str("|\n");
        if index == 0 {
            for (column, width) in widths.iter().enumerate() {
                let end = if column == 0 { "-" } else { ":" };
                let _ = write!(text, "|{}{end}", "-".repeat(width + 1));
            }
            text.push_str("|\n");
        }
    }
    text
}
