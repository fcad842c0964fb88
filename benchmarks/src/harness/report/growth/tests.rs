//! The goals, on a few lines of results.

use super::tables;
use crate::harness::results::Line;
use crate::harness::scenarios::growth::{NAME, OPENING, POINTS, QUEUES};

fn line(runtime: &'static str, pool: &'static str, figures: &[(&'static str, f64)]) -> Line {
    Line {
        scenario: NAME,
        runtime,
        pool,
        outcome: Ok(figures.to_vec()),
    }
}

/// Returns the cells in the row of this goal.
fn goal(text: &str, goal: &str) -> Vec<String> {
    let mut rows = text.lines().filter(|row| row.starts_with('|'));
    let row = rows.find(|row| row.contains(goal)).unwrap();
    let cells = row.split('|').map(|cell| cell.trim().to_owned());
    cells.filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn a_pattern_that_grows_misses_its_goal_where_it_is_dearest() {
    let points = POINTS[0].1;
    let lines = [
        line(points[0].name, "cenote", &[("same", 30.0)]),
        line(points[14].name, "cenote", &[("same", 60.0)]),
    ];

    let text = tables(&lines);

    let flat = goal(&text, "same: dearest by cheapest, one thread");
    assert_eq!(
        flat[1..],
        ["1.3", "2.00", points[14].name, "**not reached**"]
    );
    let unknown = goal(&text, "same: dearest by cheapest, two workers");
    assert_eq!(unknown[1..], ["1.3", "not measured"]);
}

#[test]
fn the_worst_point_decides_about_a_ratio() {
    let points = POINTS[1].1;
    let figures = |rotate| [("same", 30.0), ("rotate", rotate)];
    let lines = [
        line(points[1].name, "cenote", &figures(30.0)),
        line(points[1].name, "deadpool", &figures(300.0)),
        line(points[2].name, "cenote", &figures(360.0)),
        line(points[2].name, "deadpool", &figures(300.0)),
    ];

    let text = tables(&lines);

    let rotate = goal(&text, "rotate × deadpool, two workers");
    assert_eq!(rotate[1..], ["1.3", "1.20", points[2].name, "reached"]);
    let first = goal(&text, "0.10");
    assert_eq!(first, ["10", "5", "30", "1.00", "30", "0.10"]);
}

#[test]
fn opens_and_the_longest_line_have_goals() {
    let longest = QUEUES[0].1[3].1;
    let lines = [
        line(OPENING, "cenote", &[("ms", 51.0)]),
        line(longest, "cenote", &[("ns", 90.0)]),
        line(longest, "deadpool", &[("ns", 100.0)]),
    ];

    let text = tables(&lines);

    assert_eq!(goal(&text, "ms for 10,000 opens")[4], "**not reached**");
    assert_eq!(
        goal(&text, "100,000 waiters × deadpool, one thread")[4],
        "reached"
    );
}
