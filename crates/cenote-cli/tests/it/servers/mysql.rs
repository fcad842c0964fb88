//! MariaDB.

use std::sync::OnceLock;

use cenote_servers::{Found, mariadb};

use crate::doctor::finding;
use crate::{json, refused};

/// The URL of the server that all tests share.
fn url() -> &'static str {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| mariadb::find().unwrap()).url()
}

#[test]
fn the_doctor_compares_the_server_with_the_pool() {
    let (code, report) = json(&["doctor", url(), "--instances", "90000"]);

    assert_eq!(code, Some(1));
    assert_eq!(finding(&report, "connections")["severity"], "problem");
    assert_eq!(finding(&report, "clock")["severity"], "ok");
    assert_eq!(finding(&report, "privileges")["severity"], "ok");
    assert!(
        finding(&report, "idle sessions")["evidence"]
            .as_str()
            .unwrap()
            .contains("wait_timeout")
    );
}

#[test]
fn a_wrong_password_is_one_line_with_the_fix() {
    let place = url().rsplit_once('@').unwrap().1;
    let url = format!("mysql://no_such_user:secret@{place}");

    refused(
        &["doctor", &url],
        1,
        &["no_such_user:***", "check user, password and database"],
    );
}

#[test]
fn a_bench_runs_the_built_in_mix() {
    let (code, report) = json(&["bench", url(), "--seconds", "1", "--max-size", "2"]);

    assert_eq!(code, Some(0), "{report}");
    assert!(report["operations"].as_u64().unwrap() > 0);
}
