//! `cenote doctor` on SQLite and on source code, which need no server.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;
use tempfile::tempdir;

use crate::{cenote, json, refused, text};

/// Returns the finding about one thing.
#[track_caller]
pub(crate) fn finding<'a>(report: &'a Value, check: &str) -> &'a Value {
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["check"] == check);
    found.unwrap_or_else(|| panic!("no `{check}` in {report}"))
}

fn database(path: &Path) {
    let db = Connection::open(path).unwrap();
    db.execute_batch("CREATE TABLE cart (item TEXT)").unwrap();
}

#[test]
fn a_database_without_a_log_gets_a_warning_with_the_fix() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("shop.db");
    database(&file);

    let (code, report) = json(&["doctor", file.to_str().unwrap()]);

    assert_eq!(code, Some(1));
    let journal = finding(&report, "journal");
    assert_eq!(journal["severity"], "warning");
    assert!(
        journal["fix"]
            .as_str()
            .unwrap()
            .contains("journal_mode = WAL")
    );
    assert_eq!(finding(&report, "permissions")["severity"], "ok");
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "the doctor leaves no file behind");
}

#[test]
fn a_database_with_a_log_is_fine() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("shop.db");
    database(&file);
    let db = Connection::open(&file).unwrap();
    db.pragma_update(None, "journal_mode", "wal").unwrap();

    let output = cenote(&["doctor", file.to_str().unwrap()]);

    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("0 problems, 0 warnings"), "{shown}");
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("shop.db");
    fs::write(
        &file,
        "this is a letter, and it is long enough to be read as a header",
    )
    .unwrap();

    refused(
        &["doctor", file.to_str().unwrap()],
        1,
        &["check that it is a database"],
    );
}

#[test]
fn a_missing_database_is_not_created() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("shop.db");

    refused(
        &["doctor", file.to_str().unwrap()],
        1,
        &["there is no file"],
    );

    assert!(!file.exists());
}

#[test]
fn a_malformed_config_is_one_line_with_file_and_line() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("pool.toml");
    fs::write(&file, "\nmax_size = 'many'\n").unwrap();

    refused(
        &["doctor", ":memory:", "--config", file.to_str().unwrap()],
        1,
        &["pool.toml: line 2: "],
    );
}

#[test]
fn a_migration_lists_the_lines_to_touch() {
    let folder = tempdir().unwrap();
    let source = folder.path().join("src");
    fs::create_dir(&source).unwrap();
    let code = "fn main() {\n    let pool = PgPool::connect(url).await?;\n}\n";
    fs::write(source.join("main.rs"), code).unwrap();

    let place = folder.path().to_str().unwrap();
    let (code, sites) = json(&["doctor", "--from", "sqlx", place]);

    assert_eq!(code, Some(1));
    assert_eq!(sites[0]["line"], 2);
    assert!(sites[0]["file"].as_str().unwrap().ends_with("src/main.rs"));
    assert!(
        sites[0]["instead"]
            .as_str()
            .unwrap()
            .contains("Db::postgres")
    );
    assert_eq!(sites.as_array().unwrap().len(), 1);
}

#[test]
fn source_code_without_another_pool_is_fine() {
    let folder = tempdir().unwrap();

    let output = cenote(&["doctor", "--from", "bb8", folder.path().to_str().unwrap()]);

    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "0 lines to touch\n");
}
