//! Tables for people, in Markdown.

use std::fmt::Write;

use crate::results::{Line, ratio};
use crate::scenarios::Scenario;

/// Who the others are compared with.
const BESIDE: [&str; 3] = ["deadpool", "floor: Mutex<VecDeque>", "floor: ArrayQueue"];

/// Counts of which a ratio says nothing.
const NO_RATIO: [&str; 2] = ["lost slots", "attempt"];

/// A scenario: a heading and a table for each runtime.
pub fn tables(scenario: &Scenario, lines: &[Line]) -> String {
    let mut runtimes: Vec<&str> = lines.iter().map(|line| line.runtime).collect();
    runtimes.dedup();
    let mut text = String::new();
    for runtime in runtimes {
        let lines = lines.iter().filter(|line| line.runtime == runtime);
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

fn table(lines: &[Line]) -> String {
    let measured = lines.iter().filter_map(|line| line.outcome.as_ref().ok());
    let most = measured.max_by_key(|figures| figures.len());
    let mut names: Vec<&str> = most.into_iter().flatten().map(|(name, _)| *name).collect();
    if names.is_empty() {
        // No figure at all; there must be room to say why.
        names.push("");
    }
    let compared = names.first().filter(|name| !NO_RATIO.contains(name));
    let there = |pool: &&str| lines.iter().any(|line| line.pool == *pool);
    let beside: Vec<&str> = BESIDE.into_iter().filter(there).collect();

    let mut header = vec!["pool".to_owned()];
    header.extend(names.iter().map(|&name| name.to_owned()));
    if compared.is_some() {
        let short = |pool: &&str| format!("× {}", pool.trim_start_matches("floor: "));
        header.extend(beside.iter().map(short));
    }
    let mut rows = vec![header];
    for line in lines {
        let mut row = vec![line.pool.to_owned()];
        match &line.outcome {
            Ok(_) => row.extend(names.iter().map(|name| cell(line.figure(name)))),
            Err(trouble) => row.push(trouble.to_string()),
        }
        row.resize(names.len() + 1, String::new());
        if let Some(name) = compared {
            let ratios = beside.iter().map(|pool| ratio(lines, line, name, pool));
            row.extend(ratios.map(|it| it.map_or(String::new(), |ratio| format!("{ratio:.2}"))));
        }
        rows.push(row);
    }
    markdown(&rows)
}

/// Three digits that matter, or nothing.
pub fn cell(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value.is_infinite() => "∞".into(),
        Some(value) if value >= 100.0 || value == value.trunc() => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

/// Rows of equal length, the first of them the header, as a table that is also legible as it is.
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
