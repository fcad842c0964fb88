//! `cenote bench` on SQLite, which needs no server.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

use crate::{cenote, json, refused, text};

/// Returns a database with one row, and its path.
fn shop() -> (TempDir, String) {
    let folder = tempdir().unwrap();
    let file = folder.path().join("shop.db");
    let db = Connection::open(&file).unwrap();
    let sql = "CREATE TABLE sold (n INTEGER); INSERT INTO sold VALUES (0)";
    db.execute_batch(sql).unwrap();
    let path = file.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn a_closed_loop_shows_percentiles_and_a_histogram() {
    let output = cenote(&["bench", ":memory:", "--seconds", "1", "--max-size", "2"]);

    let shown = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{shown}{}",
        text(&output.stderr)
    );
    for part in [
        "closed loop of 4 callers",
        "per second",
        "p99.9",
        "acquires that waited",
        "█",
    ] {
        assert!(shown.contains(part), "no `{part}` in:\n{shown}");
    }
}

#[test]
fn an_open_loop_runs_every_operation_that_was_due() {
    let (code, report) = json(&["bench", ":memory:", "--seconds", "1", "--rate", "100"]);

    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["loop"], "open");
    assert_eq!(report["operations"], 100);
    assert!(
        report["latency_ms"][0][1].as_f64().unwrap() > 0.0,
        "{report}"
    );
}

/// A statement holds the only connection for longer than the time between two arrivals. So each
/// operation is later than the one before, and the time counts from when it was due.
#[test]
fn a_rate_that_is_too_high_shows_in_the_latency() {
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) \
               SELECT sum(i) FROM n";
    let args = [
        "bench",
        ":memory:",
        "--max-size",
        "1",
        "--seconds",
        "1",
        "--rate",
        "200",
    ];

    let (_, report) = json(&[&args[..], &["--sql", sql]].concat());

    let used = report["use_ms"].as_f64().unwrap();
    let worst = report["latency_ms"][6][1].as_f64().unwrap();
    assert!(worst > used * 10.0, "{report}");
}

#[test]
fn statements_of_the_user_run_and_may_write() {
    let (_folder, path) = shop();
    let sql = "UPDATE sold SET n = n + 1";

    let (code, report) = json(&["bench", &path, "--seconds", "1", "--sql", sql]);

    assert_eq!(code, Some(0), "{report}");
    let db = Connection::open(&path).unwrap();
    let sold: i64 = db
        .query_row("SELECT n FROM sold", [], |row| row.get(0))
        .unwrap();
    assert!(
        sold > report["operations"].as_i64().unwrap(),
        "the warm-up writes, too"
    );
}

#[test]
fn a_report_is_kept_as_a_picture_or_a_page() {
    let (folder, path) = shop();
    for (name, start) in [("report.svg", "<svg "), ("report.html", "<!doctype html>")] {
        let file = folder.path().join(name);

        let output = cenote(&[
            "bench",
            &path,
            "--seconds",
            "1",
            "--report",
            file.to_str().unwrap(),
        ]);

        assert!(output.status.success(), "{}", text(&output.stderr));
        let kept = fs::read_to_string(&file).unwrap();
        assert!(kept.starts_with(start) && kept.contains("p99 "), "{kept}");
    }
}

#[test]
fn a_report_of_another_kind_is_refused_before_the_work() {
    refused(
        &["bench", ":memory:", "--report", "report.pdf"],
        2,
        &["`.svg` or `.html`"],
    );

    assert!(!Path::new("report.pdf").exists());
}

#[test]
fn a_wrong_statement_is_one_line() {
    refused(
        &["bench", ":memory:", "--sql", "selekt 1"],
        1,
        &["syntax error", "selekt"],
    );
}

#[test]
fn a_missing_database_is_not_created() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("shop.db");

    refused(&["bench", file.to_str().unwrap()], 1, &["there is no file"]);

    assert!(!file.exists());
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_work() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("letter");
    fs::write(&file, "not a folder").unwrap();
    let below = file.join("report.svg");

    let args = ["bench", ":memory:", "--seconds", "600", "--report"];
    refused(
        &[&args[..], &[below.to_str().unwrap()]].concat(),
        1,
        &["cannot write `", "name a place that you may write to"],
    );
}

#[test]
fn a_database_that_may_only_be_read_is_one_line() {
    let (_folder, path) = shop();
    let url = format!("sqlite://{path}?mode=ro");

    refused(
        &["bench", &url, "--sql", "UPDATE sold SET n = n + 1"],
        1,
        &["readonly database"],
    );
}
