//! The summary table: a row for each pool, and a column for each of the most important figures.

use crate::harness::report::table::{cell, markdown};
use crate::harness::results::Line;

/// A column: its heading and the place of its figure.
struct Column {
    heading: &'static str,
    scenario: &'static str,
    runtime: &'static str,
    figure: &'static str,
}

const fn column(
    heading: &'static str,
    scenario: &'static str,
    runtime: &'static str,
    figure: &'static str,
) -> Column {
    Column {
        heading,
        scenario,
        runtime,
        figure,
    }
}

const ONE: &str = "current-thread";
const TWO: &str = "2 workers";

const COLUMNS: &[Column] = &[
    column("S1 ns", "S1", ONE, "ns"),
    column("S2 ns", "S2", TWO, "ns"),
    column("S2b ns", "S2b", TWO, "ns"),
    column("S3 ns", "S3", TWO, "ns"),
    column("S4 kops/s", "S4", TWO, "kops/s"),
    column("max:min", "S4", TWO, "max:min"),
    column("starved", "S4", TWO, "starved"),
    column("starved, 1 thread", "S4", ONE, "starved"),
    column("S5 µs", "S5", TWO, "cpu µs each"),
    column("S6 lost", "S6", TWO, "lost slots"),
    column("stuck", "S6", TWO, "stuck waiters"),
    column("S7 instr.", "S7", ONE, "instructions"),
    column("S8 bytes", "S8", "one task", "idle pool bytes"),
    column("S9 ms", "S9", TWO, "ms"),
    column("S10 attempt", "S10", TWO, "attempt"),
    column(
        "S13 PG kops/s",
        "S13",
        "PostgreSQL, mix, 512 tasks",
        "kops/s",
    ),
    column("SQLite kops/s", "S13", "SQLite, mix, 512 tasks", "kops/s"),
];

/// The columns that a user understands without the list of scenarios.
const FOR_USERS: &[Column] = &[
    column("one task, ns", "S1", ONE, "ns"),
    column("two cores, ns", "S2b", TWO, "ns"),
    column("hand-over, ns", "S3", TWO, "ns"),
    column("most : least served", "S4", TWO, "max:min"),
    column("timed-out acquire, µs", "S5", TWO, "cpu µs each"),
];

/// Returns the summary, with only the measured columns.
pub fn summary(lines: &[Line]) -> String {
    table(lines, COLUMNS)
}

/// Returns the summary for users: few columns, and no lower bounds, which are not pools.
pub fn for_users(lines: &[Line]) -> String {
    let pools = lines.iter().filter(|line| !line.pool.starts_with("floor"));
    let pools: Vec<Line> = pools.cloned().collect();
    table(&pools, FOR_USERS)
}

fn table(lines: &[Line], columns: &[Column]) -> String {
    let find = |pool: &str, column: &Column| {
        let mut lines = lines.iter();
        lines.find(|line| {
            line.pool == pool && line.scenario == column.scenario && line.runtime == column.runtime
        })
    };
    let mut pools: Vec<&str> = Vec::new();
    for line in lines {
        if !pools.contains(&line.pool) {
            pools.push(line.pool);
        }
    }
    let measured = |column: &&Column| pools.iter().any(|pool| find(pool, column).is_some());
    let columns: Vec<&Column> = columns.iter().filter(measured).collect();

    let mut header = vec!["pool".to_owned()];
    header.extend(columns.iter().map(|column| column.heading.to_owned()));
    let mut rows = vec![header];
    for pool in pools {
        let mut row = vec![pool.to_owned()];
        row.extend(columns.iter().map(|column| {
            find(pool, column).map_or(String::new(), |line| match &line.outcome {
                Ok(_) => cell(line.figure(column.figure)),
                Err(trouble) => trouble.to_string(),
            })
        }));
        rows.push(row);
    }
    markdown(&rows)
}
