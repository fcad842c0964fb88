//! The tables of S15: a row for each size, a column for each pattern, and whether the goals are
//! reached.

#[cfg(test)]
mod tests;

use std::fmt::Write;

use crate::harness::report::table::{cell, markdown};
use crate::harness::results::{Line, ratio};
use crate::harness::runtime::Runtime;
use crate::harness::scenarios::growth::{
    NAME, OPENING, POINTS, POOLS, Point, QUEUES, SUBJECT, TAKE_PART,
};
use crate::harness::stats::{maximum, minimum};

/// The pool that the others are compared with.
const BESIDE: &str = "deadpool";

/// The figures of one point.
const PATTERNS: [&str; 4] = ["same", "rotate", "random", "two pools"];

type Rows = Vec<Vec<String>>;

/// Returns all tables and the goals.
pub(super) fn tables(lines: &[Line]) -> String {
    let mut text = String::new();
    let mut add = |title: &str, rows: &Rows| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "**{NAME}**, {title}\n\n{}", markdown(rows));
    };
    for (runtime, points) in POINTS {
        let who = runtime.name();
        if lines.iter().any(|line| line.pool == SUBJECT) {
            let title = format!("{who}: ns per trip of {SUBJECT}, and × {BESIDE}");
            add(&title, &subject(lines, runtime, &points));
        }
        let title = format!("{who}: ns per trip of the others, same / rotate / random");
        add(&title, &others(lines, &points));
    }
    let pools = POOLS.map(|(_, name)| name);
    let title = "current-thread: ns per trip, pools used in turn";
    add(title, &by_part(lines, &pools, "ns"));
    for (runtime, lengths) in QUEUES {
        let title = format!("{}: ns per trip, waiters on ten", runtime.name());
        add(
            &title,
            &by_part(lines, &lengths.map(|(_, name)| name), "ns"),
        );
    }
    let title = "current-thread: ms for 10,000 opens, one after another";
    add(title, &by_part(lines, &[OPENING], "ms"));
    if lines.iter().any(|line| line.pool == SUBJECT) {
        add(&format!("the goals of {SUBJECT}"), &goals(lines));
    }
    text
}

fn find<'a>(lines: &'a [Line], part: &str, pool: &str) -> Option<&'a Line> {
    let mut lines = lines.iter();
    lines.find(|line| line.runtime == part && line.pool == pool)
}

/// Formats a number with a comma after the thousands.
fn thousands(number: usize) -> String {
    match (number / 1_000, number % 1_000) {
        (0, rest) => rest.to_string(),
        (thousands, rest) => format!("{thousands},{rest:03}"),
    }
}

/// Returns how many resources are out, as in the round.
fn out(point: Point, runtime: Runtime) -> String {
    let tasks = if runtime == Runtime::CurrentThread {
        1
    } else {
        2
    };
    thousands(point.out(tasks))
}

fn subject(lines: &[Line], runtime: Runtime, points: &[Point]) -> Rows {
    let there = |name: &&&str| {
        let mut own = points
            .iter()
            .filter_map(|point| find(lines, point.name, SUBJECT));
        own.any(|line| line.figure(name).is_some())
    };
    let patterns: Vec<&str> = PATTERNS.iter().filter(there).copied().collect();
    let mut header = vec!["max_size".to_owned(), "out".to_owned()];
    for &pattern in &patterns {
        header.extend([pattern.to_owned(), "×".to_owned()]);
    }
    let mut rows = vec![header];
    for point in points {
        let mut row = vec![thousands(point.size), out(*point, runtime)];
        let line = find(lines, point.name, SUBJECT);
        for pattern in &patterns {
            row.push(line.map_or(String::new(), |line| figure(line, pattern)));
            row.push(times(
                line.and_then(|line| ratio(lines, line, pattern, BESIDE)),
            ));
        }
        rows.push(row);
    }
    rows
}

fn others(lines: &[Line], points: &[Point]) -> Rows {
    let pools = measured(lines, points.iter().map(|point| point.name));
    let pools: Vec<&str> = pools.into_iter().filter(|pool| *pool != SUBJECT).collect();
    let mut header = vec!["max_size".to_owned(), "out".to_owned()];
    header.extend(pools.iter().map(|pool| short(pool)));
    let mut rows = vec![header];
    for point in points {
        let mut row = vec![thousands(point.size), format!("{} %", point.percent)];
        row.extend(pools.iter().map(|pool| {
            let Some(line) = find(lines, point.name, pool) else {
                return String::new();
            };
            let figures = PATTERNS[..3].iter().map(|pattern| figure(line, pattern));
            let mut figures: Vec<String> = figures.filter(|figure| !figure.is_empty()).collect();
            figures.dedup_by(|one, other| one == other && line.outcome.is_err());
            figures.join(" / ")
        }));
        rows.push(row);
    }
    rows
}

/// Makes a row for each part and a column for each pool.
fn by_part(lines: &[Line], parts: &[&str], name: &str) -> Rows {
    let pools = measured(lines, parts.iter().copied());
    let mut header = vec![String::new()];
    header.extend(pools.iter().map(|pool| short(pool)));
    header.push(format!("× {BESIDE}"));
    let mut rows = vec![header];
    for part in parts {
        let mut row = vec![(*part).to_owned()];
        row.extend(
            pools.iter().map(|pool| {
                find(lines, part, pool).map_or(String::new(), |line| figure(line, name))
            }),
        );
        let own = find(lines, part, SUBJECT);
        row.push(times(own.and_then(|line| ratio(lines, line, name, BESIDE))));
        rows.push(row);
    }
    rows
}

/// Returns the pools with a result in one of these parts, in the order of the tables.
fn measured<'a>(lines: &[Line], parts: impl Iterator<Item = &'a str> + Clone) -> Vec<&'static str> {
    let took_part = |pool: &&str| parts.clone().any(|part| find(lines, part, pool).is_some());
    TAKE_PART.into_iter().filter(took_part).collect()
}

fn short(pool: &str) -> String {
    pool.trim_start_matches("floor: ").to_owned()
}

fn figure(line: &Line, name: &str) -> String {
    match &line.outcome {
        Ok(_) => cell(line.figure(name)),
        Err(trouble) => trouble.to_string(),
    }
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"))
}

/// Makes a row for each goal: the goal, the measured value, and whether it is reached.
fn goals(lines: &[Line]) -> Rows {
    let [one, two] = POINTS.map(|(_, points)| points.map(|point| point.name));
    let longest = QUEUES.map(|(_, lengths)| [lengths[lengths.len() - 1].1]);
    let opened = find(lines, OPENING, SUBJECT).and_then(|line| line.figure("ms"));
    let worst = |parts: &[&'static str], name| worst(lines, parts, name);
    let goals = [
        (
            "same: dearest by cheapest, one thread",
            flatness(lines, &one, "same"),
            1.3,
        ),
        (
            "same: dearest by cheapest, two workers",
            flatness(lines, &two, "same"),
            1.3,
        ),
        (
            "two pools: dearest by cheapest",
            flatness(lines, &one, "two pools"),
            1.3,
        ),
        ("rotate × deadpool, one thread", worst(&one, "rotate"), 1.1),
        ("random × deadpool, one thread", worst(&one, "random"), 1.1),
        ("rotate × deadpool, two workers", worst(&two, "rotate"), 1.3),
        ("random × deadpool, two workers", worst(&two, "random"), 1.3),
        ("ms for 10,000 opens", opened.map(|ms| (ms, OPENING)), 50.0),
        (
            "100,000 waiters × deadpool, one thread",
            worst(&longest[0], "ns"),
            1.0,
        ),
        (
            "100,000 waiters × deadpool, two workers",
            worst(&longest[1], "ns"),
            1.0,
        ),
    ];
    let header = ["goal", "at most", "measured", "at", ""];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(goals.map(|(goal, most, limit)| {
        let (value, at) = most.unzip();
        let reached = match value {
            None => "not measured",
            Some(value) if value <= limit => "reached",
            Some(_) => "**not reached**",
        };
        vec![
            goal.to_owned(),
            limit.to_string(),
            value.map_or(String::new(), |value| format!("{value:.2}")),
            at.unwrap_or_default().to_owned(),
            reached.to_owned(),
        ]
    }));
    rows
}

/// Returns the largest value divided by the smallest, and the part with the largest.
fn flatness(lines: &[Line], parts: &[&'static str], name: &str) -> Option<(f64, &'static str)> {
    let figures = parts.iter().filter_map(|&part| {
        let line = find(lines, part, SUBJECT)?;
        Some((line.figure(name)?, part))
    });
    let figures: Vec<(f64, &str)> = figures.collect();
    let values: Vec<f64> = figures.iter().map(|(value, _)| *value).collect();
    let (least, most) = minimum(&values).zip(maximum(&values))?;
    let at = figures.iter().find(|(value, _)| *value == most);
    Some((most / least, at?.1))
}

/// Returns the worst ratio and its part.
fn worst(lines: &[Line], parts: &[&'static str], name: &str) -> Option<(f64, &'static str)> {
    let ratios = parts.iter().filter_map(|&part| {
        let line = find(lines, part, SUBJECT)?;
        Some((ratio(lines, line, name, BESIDE)?, part))
    });
    ratios.max_by(|one, other| one.0.total_cmp(&other.0))
}
