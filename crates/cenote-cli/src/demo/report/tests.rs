//! A summary with an error must say so.

use super::*;

/// Returns the summary of one write that went well.
fn summary() -> Summary {
    let mut tally = Tally::new().unwrap();
    tally.writes = 1;
    Summary {
        shop: None,
        tasks: 1,
        took: Duration::from_secs(1),
        tally,
        books: Books {
            entries: 1,
            moved: 7,
            balance: 7,
        },
        results: Vec::new(),
        before_close: Status::default(),
        after_close: Status::default(),
        leftover: Leftover::default(),
    }
}

#[test]
fn a_summary_without_errors_passes() {
    assert!(summary().verdict().is_ok());
}

#[test]
fn a_lost_row_is_an_error_and_is_printed() {
    let mut summary = summary();
    summary.books.entries = 0;

    let error = summary.verdict().unwrap_err();

    assert_eq!(error.to_string(), "0 rows for 1 successful writes");
    assert!(summary.to_string().contains("WRONG: 0 rows"));
}

#[test]
fn half_a_transaction_is_an_error() {
    let mut summary = summary();
    summary.books.balance = 0;

    let error = summary.verdict().unwrap_err();

    assert_eq!(error.to_string(), "the entries sum to 7, the accounts to 0");
}

#[test]
fn a_connection_that_is_not_closed_is_an_error() {
    let mut summary = summary();
    summary.leftover.unfinished = 1;

    let error = summary.verdict().unwrap_err();

    assert_eq!(error.to_string(), "1 connections are still open");
}

#[test]
fn a_scene_that_fails_is_an_error() {
    let mut summary = summary();
    summary.results.push(SceneResult {
        scene: "leak",
        shown: "not found".to_owned(),
        ok: false,
    });

    let error = summary.verdict().unwrap_err();

    assert_eq!(error.to_string(), "leak: not found");
}
