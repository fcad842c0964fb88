//! `cenote replay` on traces that were made up, and on files that are none.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use cenote_telemetry::trace::{End, Outcome, Recorded, Stop, Visit};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::{cenote, json, refused, text};

const MS: Duration = Duration::from_millis(1);

/// A pool of four: every millisecond a caller comes who holds for 4 ms, so four are
/// just enough.
fn made_up() -> Recorded {
    let mut trace = Recorded {
        total: 4,
        sites: ["unknown", "src/orders.rs:7"].map(str::to_owned).into(),
        opens: vec![3 * MS],
        ..Recorded::default()
    };
    trace.config.name = Some("orders".to_owned());
    trace.config.max_size = 4;
    trace.visits = (0..300)
        .map(|nth| Visit {
            arrival: nth * MS,
            waited: Duration::ZERO,
            outcome: Outcome::Returned { held: 4 * MS },
            site: 1,
            lane: 0,
        })
        .collect();
    trace.end = Some(End {
        stop: Stop::Asked,
        lasted: 300 * MS,
        lost: 0,
        cancelled: 2,
        refused: 0,
    });
    trace
}

/// Writes a trace. Returns its folder and its path.
pub(crate) fn written(trace: &Recorded) -> (TempDir, String) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("orders.trace");
    trace.write(File::create(&path).unwrap()).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

fn wait(size: &Value, case: &str, quantile: &str) -> f64 {
    size[case]["wait_ms"][quantile].as_f64().unwrap()
}

#[test]
fn smaller_sizes_are_firm_and_larger_ones_are_a_band() {
    let (_folder, path) = written(&made_up());

    let (code, report) = json(&["replay", &path, "--max-size", "3..6"]);

    assert_eq!(code, Some(0), "{report}");
    let sizes = report["sizes"].as_array().unwrap();
    let tried: Vec<_> = sizes.iter().map(|size| size["max_size"].as_u64()).collect();
    assert_eq!(tried, [3, 4, 5, 6].map(Some));
    assert_eq!(report["firm_up_to"], 4);
    // Each caller waits a third of a millisecond longer than the one before.
    let longest = wait(&sizes[0], "best", "max");
    assert!((longest - 99.0).abs() < 2.0, "{report}");
    assert_eq!(wait(&sizes[1], "best", "max"), 0.0);
    assert!(sizes[1].get("worst").is_none() && sizes[2].get("worst").is_some());
    assert!(wait(&sizes[2], "worst", "p99") >= wait(&sizes[2], "best", "p99"));
    assert_eq!(sizes[3]["best"]["opens"], 0, "four were there: {report}");
}

#[test]
fn the_text_has_a_table_a_chart_and_what_is_firm() {
    let (_folder, path) = written(&made_up());

    let output = cenote(&["replay", &path, "--max-size", "2,3,8"]);

    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for part in [
        "orders: 300 acquires in 300 ms, recorded with `max_size` 4",
        "wait p50",
        "8 at best",
        "8 at worst",
        "█",
        "Sizes up to 4 are firm",
        "Larger sizes are a band",
        "2 acquires were dropped while they waited",
    ] {
        assert!(shown.contains(part), "no `{part}` in:\n{shown}");
    }
}

#[test]
fn a_replay_is_the_same_every_time() {
    let (_folder, path) = written(&made_up());
    let args = ["replay", &path, "--max-size", "2..9", "--json"];

    assert_eq!(cenote(&args).stdout, cenote(&args).stdout);
}

#[test]
fn a_report_is_kept_as_a_picture_or_a_page() {
    let (folder, path) = written(&made_up());
    for (name, start) in [("report.svg", "<svg "), ("report.html", "<!doctype html>")] {
        let file = folder.path().join(name);
        let report = file.to_str().unwrap();

        let output = cenote(&["replay", &path, "--max-size", "3,8", "--report", report]);

        assert!(output.status.success(), "{}", text(&output.stderr));
        let kept = fs::read_to_string(&file).unwrap();
        assert!(
            kept.starts_with(start) && kept.contains("wait p99"),
            "{kept}"
        );
    }
}

#[test]
fn a_trace_without_an_end_is_played_with_a_note() {
    let (_folder, path) = written(&Recorded {
        end: None,
        ..made_up()
    });

    let (code, report) = json(&["replay", &path, "--max-size", "4"]);

    assert_eq!(code, Some(0));
    let notes = report["notes"].to_string();
    assert!(notes.contains("cut short"), "{notes}");
}

#[test]
fn sizes_that_cannot_be_are_wrong_usage() {
    let (_folder, path) = written(&made_up());
    for (sizes, fix) in [
        ("40..4", "write `4..40`"),
        ("0..3", "at least one resource"),
        ("many", "write `8`, `4..40` or `4,8,16`"),
    ] {
        refused(&["replay", &path, "--max-size", sizes], 2, &[sizes, fix]);
    }
}

#[test]
fn a_file_that_is_missing_foreign_cut_off_or_empty_is_one_line() {
    let (folder, path) = written(&made_up());
    let name = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let whole = fs::read(&path).unwrap();
    fs::write(name("foreign"), "max_size = 4\n").unwrap();
    fs::write(name("short"), &whole[..whole.len() / 2]).unwrap();
    fs::write(name("later"), b"cenotet\x02").unwrap();
    let mut changed = whole;
    changed[40] ^= 1;
    fs::write(name("changed"), changed).unwrap();
    let none = File::create(name("none")).unwrap();
    Recorded::default().write(none).unwrap();

    for (file, code, said) in [
        ("missing", 1, "No such file"),
        ("foreign", 1, "no trace of cenote"),
        ("short", 1, "cut off"),
        ("later", 1, "update cenote"),
        ("changed", 1, "broken"),
        ("none", 2, "has no acquires"),
    ] {
        let file = name(file);
        refused(&["replay", &file], code, &[&file, said]);
    }
    refused(&["replay", &name("")], 1, &["directory"]);
}

#[test]
fn a_report_that_cannot_be_written_is_one_line() {
    let (_folder, path) = written(&made_up());
    let report = |file| ["replay", &path, "--max-size", "4", "--report", file];

    let missing = "/no/such/folder/a.svg";
    let output = cenote(&report(missing));

    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("error: cannot write") && said.contains(missing),
        "{said}"
    );
    refused(&report("a.pdf"), 2, &["`.svg` or `.html`"]);
    assert!(!Path::new("a.pdf").exists());
}
