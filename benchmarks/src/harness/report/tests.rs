//! Tables, dates and marks, on a few lines of results.

use super::document::between_marks;
use super::machine::date;
use super::summary::summary;
use super::table::{cell, tables};
use crate::harness::bounded::Trouble;
use crate::harness::results::{Line, ratio};
use crate::harness::scenarios::ALL;

fn line(pool: &'static str, nanos: f64) -> Line {
    Line {
        scenario: "S1",
        runtime: "current-thread",
        pool,
        outcome: Ok(vec![("ns", nanos)]),
    }
}

fn hangs(pool: &'static str) -> Line {
    Line {
        outcome: Err(Trouble::Hangs),
        ..line(pool, 0.0)
    }
}

#[test]
fn a_ratio_is_taken_within_one_scenario_and_runtime() {
    let elsewhere = Line {
        runtime: "2 workers",
        ..line("deadpool", 1.0)
    };
    let lines = [elsewhere, line("cenote", 50.0), line("deadpool", 200.0)];

    assert_eq!(ratio(&lines, &lines[1], "ns", "deadpool"), Some(0.25));
    assert_eq!(ratio(&lines, &lines[1], "ns", "bb8"), None);
}

#[test]
fn a_pool_that_hangs_has_no_ratio_and_no_figure() {
    let lines = [line("cenote", 50.0), line("deadpool", 200.0), hangs("qp")];

    let text = tables(&ALL[0], &lines);

    let row = text.lines().find(|row| row.contains("qp")).unwrap();
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    assert_eq!(cells, ["", "qp", "hangs", "", ""]);
    assert!(text.contains("|    50 |       0.25 |"), "{text}");
}

#[test]
fn parts_that_differ_in_tasks_share_a_table_and_are_compared_within_their_part() {
    let line = |runtime, pool, throughput, p99| Line {
        scenario: "S13",
        runtime,
        pool,
        outcome: Ok(vec![("kops/s", throughput), ("p99 µs", p99)]),
    };
    let lines = [
        line("SQLite, mix, 1 task", "cenote", 6.0, 10.0),
        line("SQLite, mix, 1 task", "sqlx", 2.0, 40.0),
        line("SQLite, mix, 8 tasks", "cenote", 9.0, 30.0),
        line("SQLite, mix, 8 tasks", "sqlx", 6.0, 60.0),
    ];

    let text = tables(&ALL[0], &lines);

    assert_eq!(text.matches("**, SQLite, mix: ").count(), 1, "{text}");
    let cells = |row: &'static str| {
        let row = text.lines().rfind(|line| line.contains(row));
        let cells = row.unwrap().split('|').map(str::trim);
        cells.filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
    };
    assert_eq!(
        cells("pool"),
        ["pool", "tasks", "kops/s", "p99 µs", "× sqlx", "p99 × sqlx"]
    );
    assert_eq!(cells("cenote"), ["cenote", "8", "9", "30", "1.50", "0.50"]);
}

#[test]
fn reads_and_writes_are_compared_each_with_their_own() {
    let line = |pool, read, write| Line {
        scenario: "S13",
        runtime: "SQLite, mix, 8 tasks",
        pool,
        outcome: Ok(vec![
            ("kops/s", 1.0),
            ("read p99 µs", read),
            ("write p99 µs", write),
        ]),
    };

    let text = tables(
        &ALL[0],
        &[line("cenote", 10.0, 50.0), line("sqlx", 40.0, 40.0)],
    );

    assert!(
        text.contains("| read p99 × sqlx | write p99 × sqlx |"),
        "{text}"
    );
    assert!(
        text.contains("|            0.25 |             1.25 |"),
        "{text}"
    );
}

#[test]
fn the_summary_has_only_columns_that_were_measured() {
    let text = summary(&[line("cenote", 50.0), hangs("qp")]);

    assert!(text.starts_with("| pool   | S1 ns |\n"), "{text}");
    assert!(text.contains("| qp     | hangs |"), "{text}");
}

#[test]
fn numbers_keep_the_digits_that_matter() {
    assert_eq!(cell(Some(1234.5)), "1234");
    assert_eq!(cell(Some(12.34)), "12.3");
    assert_eq!(cell(Some(1.234)), "1.23");
    assert_eq!(cell(Some(2.0)), "2");
    assert_eq!(cell(Some(f64::INFINITY)), "∞");
    assert_eq!(cell(None), "");
}

#[test]
fn results_replace_only_what_stands_between_the_marks() {
    let mark = "<!-- results: written by `cargo xtask bench --write` -->";
    let text = format!("before\n{mark}\nold\n<!-- end of results -->\nafter\n");

    let new = between_marks(&text, "new\n").unwrap();

    assert_eq!(
        new,
        format!("before\n{mark}\n\nnew\n\n<!-- end of results -->\nafter\n")
    );
    assert_eq!(between_marks("no marks", "new"), None);
}

#[test]
fn days_become_dates_in_leap_years_too() {
    assert_eq!(date(0), (1970, 1, 1));
    assert_eq!(date(789), (1972, 2, 29));
    assert_eq!(date(11_016), (2000, 2, 29));
    assert_eq!(date(20_772), (2026, 11, 15));
}
