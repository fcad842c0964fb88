//! The chapter on operations has every verdict, advice, log line, error, event and metric.

use cenote::status::RefusalReason;
use cenote::{CloseReason, Pool};
use cenote_telemetry::{Pools, Prometheus};

use crate::names::{between, events, fixed_part, literals, log_lines, read, variants};

const CORE: &str = "crates/cenote/src";

/// The text of a section of the chapter, by its heading.
fn section(heading: &str) -> String {
    let chapter = read("guide/06-operations.md");
    let section = between(&chapter, &format!("\n## {heading}\n"), "\n## ");
    assert!(!section.is_empty(), "there is no section `{heading}`");
    section.to_owned()
}

/// Fails if the section does not have one of the names as code.
fn assert_has<S: AsRef<str>>(heading: &str, names: &[S]) {
    let text = section(heading);
    let is_missing = |name: &&str| !text.contains(&format!("`{name}`"));
    let names = names.iter().map(AsRef::as_ref);
    let missing: Vec<&str> = names.filter(is_missing).collect();
    assert!(
        missing.is_empty(),
        "not in the section `{heading}`: {missing:?}"
    );
}

#[test]
fn every_verdict_has_a_row() {
    assert_has(
        "Verdicts",
        &variants(&format!("{CORE}/status.rs"), "Health"),
    );
    let states = variants(&format!("{CORE}/breaker.rs"), "BreakerState");
    assert_has("Verdicts", &states);
}

#[test]
fn every_kind_of_advice_has_a_row() {
    assert_has(
        "Advice",
        &variants(&format!("{CORE}/advice.rs"), "AdviceKind"),
    );
}

#[test]
fn every_log_line_has_a_row() {
    let mut lines = log_lines();
    // These are written by way of a variable.
    lines.extend(["warmed up", "not warmed up"].map(str::to_owned));
    let open_error = read(&format!("{CORE}/error.rs"));
    for text in [
        "opening failed",
        "opening took longer than",
        "opening panicked",
    ] {
        assert!(open_error.contains(&format!("\"{text}")), "{text}");
        lines.push(text.to_owned());
    }
    lines.retain(|line| line != "opened in");

    assert_has("Log lines", &lines);
}

#[test]
fn every_log_line_of_a_fleet_has_a_row_in_its_chapter() {
    let code = read("crates/cenote-fleet/src/change.rs");
    let texts = between(&code, "impl fmt::Display for Change", "\n}");
    let texts: Vec<&str> = texts.split('"').skip(1).step_by(2).collect();
    assert!(texts.len() > 10, "the texts were moved: {texts:?}");

    let chapter = read("guide/10-fleets.md");
    let parts = texts.into_iter().filter_map(fixed_part);
    let missing: Vec<_> = parts
        .filter(|part| !chapter.contains(&format!("`{part}`")))
        .collect();

    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_error_has_a_row() {
    for (file, name) in [
        ("crates/cenote/src/error.rs", "AcquireError"),
        ("crates/cenote/src/error.rs", "OpenError"),
        ("crates/cenote/src/error_class.rs", "ErrorClass"),
        ("crates/cenote/src/scope/bind.rs", "BindError"),
        ("crates/cenote/src/timed_out.rs", "Phase"),
        ("crates/cenote/src/warm_error.rs", "WarmError"),
        ("crates/cenote-sqlx/src/error.rs", "Class"),
    ] {
        assert_has("Errors", &variants(file, name));
    }
}

#[test]
fn every_reason_has_a_row() {
    assert_has("Reasons", &CloseReason::ALL.map(CloseReason::name));
    assert_has("Reasons", &RefusalReason::ALL.map(RefusalReason::name));
    assert_has(
        "Reasons",
        &variants(&format!("{CORE}/event.rs"), "Callback"),
    );
}

#[test]
fn every_event_has_a_row() {
    let events = events();
    assert!(events.len() > 15, "{events:?}");
    assert_has("Events", &events);
}

#[test]
fn every_metric_that_is_exported_has_a_row() {
    let pool = Pool::from_fn(async || Ok::<_, String>(())).build();
    let pool = pool.expect("the defaults are valid");
    let prometheus = Prometheus::new(Pools::all());
    let lease = pool.acquire_blocking();

    let text = prometheus.render();
    drop(lease);

    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names: Vec<&str> = types.filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() > 20, "{text}");
    assert_has("Metrics", &names);
}

#[test]
fn every_metric_has_a_row() {
    let begins = ["cenote_", "cenote.", "db.client.connection."];
    for file in ["figures.rs", "fleets.rs", "table.rs"] {
        let path = format!("crates/cenote-telemetry/src/watch/{file}");
        let names = literals(&path, &begins);
        assert!(!names.is_empty(), "{path} has no metric");
        assert_has("Metrics", &names);
    }
}
