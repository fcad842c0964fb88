//! The program as a user sees it: what it prints, and its exit code.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod bench;
mod config;
mod demo;
mod doctor;
mod frame;
mod guide;
mod interrupt;
mod record;
mod replay;
#[cfg(any(
    feature = "mysql",
    feature = "nats",
    feature = "postgres",
    feature = "redis"
))]
mod servers;
#[cfg(unix)]
mod terminal;
mod top;

use std::process::{Command, Output};

fn cenote(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cenote"))
        .args(args)
        .output()
        .expect("the program was built for this test")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs the program, which must fail with this exit code and one line that contains all parts.
#[track_caller]
fn refused(args: &[&str], code: i32, parts: &[&str]) {
    let output = cenote(args);

    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("error: "), "{said}");
    for part in parts {
        assert!(said.contains(part), "no `{part}` in: {said}");
    }
    assert!(output.stdout.is_empty());
}

/// Runs the program with `--json`, and returns its exit code and its JSON.
#[track_caller]
fn json(args: &[&str]) -> (Option<i32>, serde_json::Value) {
    let output = cenote(&[args, &["--json"]].concat());
    let shown = text(&output.stdout);
    let value = serde_json::from_str(&shown);
    let said = text(&output.stderr);
    let value = value.unwrap_or_else(|error| panic!("{error} in: {shown}{said}"));
    (output.status.code(), value)
}
