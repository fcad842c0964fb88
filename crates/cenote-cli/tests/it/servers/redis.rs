//! Redis.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::OnceLock;

use cenote_servers::{Found, redis};

use crate::doctor::finding;
use crate::{json, refused};

/// The URL of the server that all tests share.
fn url() -> &'static str {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| redis::find().unwrap()).url()
}

#[test]
fn the_doctor_finds_a_limit_and_a_short_time_limit() {
    let server = redis::start_with(&[("maxclients", "30"), ("timeout", "60")]).unwrap();

    let (code, report) = json(&["doctor", server.url(), "--instances", "4"]);

    assert_eq!(code, Some(1));
    assert_eq!(finding(&report, "connections")["severity"], "problem");
    assert_eq!(finding(&report, "idle sessions")["severity"], "warning");
    assert_eq!(
        finding(&report, "user")["evidence"],
        "logged in as `default`"
    );
}

#[test]
fn a_check_without_permission_is_a_note_and_the_others_go_on() {
    let server = redis::start().unwrap();
    let mut admin = TcpStream::connect(server.addr()).unwrap();
    let user = "ACL SETUSER looker on >secret +ping +client +hello +auth +acl|whoami +reset";
    writeln!(admin, "{user} +select\r").unwrap();
    let mut answer = [0; 5];
    admin.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+OK\r\n");
    let url = server
        .url()
        .replacen("redis://", "redis://looker:secret@", 1);

    let (code, report) = json(&["doctor", &url]);

    assert_eq!(code, Some(0), "{report}");
    assert_eq!(finding(&report, "connections")["severity"], "note");
    assert_eq!(
        finding(&report, "user")["evidence"],
        "logged in as `looker`"
    );
    assert_eq!(finding(&report, "latency")["severity"], "ok");
}

#[test]
fn a_wrong_password_is_one_line_with_the_fix() {
    let url = url().replacen("redis://", "redis://no_such_user:secret@", 1);

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
