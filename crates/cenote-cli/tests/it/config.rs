//! `cenote config check`.

use std::fs;

use tempfile::tempdir;

use crate::{cenote, json, refused, text};

#[track_caller]
fn check(name: &str, content: &str) -> (Option<i32>, String) {
    let folder = tempdir().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, content).unwrap();
    let output = cenote(&["config", "check", file.to_str().unwrap()]);
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    (output.status.code(), text(&output.stdout))
}

#[test]
fn a_good_file_is_ok() {
    let (code, shown) = check("pool.toml", "max_size = 20\nidle_timeout = '1m'\n");

    assert_eq!(code, Some(0));
    assert!(shown.ends_with("pool.toml: ok\n"), "{shown}");
}

#[test]
fn a_value_out_of_range_is_a_finding_with_field_value_and_range() {
    let (code, shown) = check("pool.json", r#"{"max_size": 0}"#);

    assert_eq!(code, Some(1));
    assert!(
        shown.contains("`max_size` is 0, allowed: at least 1"),
        "{shown}"
    );
}

#[test]
fn a_malformed_file_is_a_finding_with_its_line() {
    let (code, shown) = check("pool.toml", "max_size = 20\nidle_timeout = 5 minutes\n");

    assert_eq!(code, Some(1));
    assert!(shown.contains("line 2: "), "{shown}");
    assert_eq!(shown.lines().count(), 1, "{shown}");
}

#[test]
fn json_has_the_parts_of_a_finding_and_the_whole_config() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("pool.toml");
    let path = file.to_str().unwrap();

    fs::write(&file, "max_opening = 0").unwrap();
    let (code, wrong) = json(&["config", "check", path]);
    fs::write(&file, "max_size = 7").unwrap();
    let (_, right) = json(&["config", "check", path]);

    assert_eq!(code, Some(1));
    assert_eq!(wrong["field"], "max_opening");
    assert_eq!(wrong["value"], "0");
    assert_eq!(wrong["allowed"], "at least 1");
    assert_eq!(right["ok"], true);
    assert_eq!(right["config"]["max_size"], 7);
}

#[test]
fn a_file_that_is_not_there_is_an_error_with_its_path() {
    refused(
        &["config", "check", "no/such/pool.toml"],
        1,
        &["`no/such/pool.toml`", "check path and permissions"],
    );
}
