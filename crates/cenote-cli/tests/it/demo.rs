//! The demo as a user sees it: its output, its live page, its exit code, and that it leaves no file
//! behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use tempfile::tempdir;

use crate::interrupt::{interrupt, until_it_hears_interrupts};
use crate::{cenote, json, text};

#[test]
fn a_demo_ends_well_and_shows_every_row() {
    let output = cenote(&["demo", "--seconds", "1", "--tasks", "8", "--size", "2"]);

    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{shown}{said}");
    let promised = [
        "reads",
        "writes",
        "per second",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "max_size",
        "idle",
        "in_use",
        "waiting",
        "opened",
        "acquired",
        "waited",
        "timed_out",
        "cancelled",
        "scenes",
        "warm-up",
        "spike",
        "found: resource",
        "(leaky handler)",
        "outage",
        "refused at once",
        "nested",
        "drain",
        "closes by reason",
        "discarded",
        "pool_closed",
        "total",
    ];
    for part in promised {
        assert!(shown.contains(part), "no `{part}` in:\n{shown}");
    }
    assert!(shown.contains("verify  ok: "), "{shown}");
    assert!(shown.contains("close   ok: "), "{shown}");
    assert!(shown.contains("scenes  ok: 6 "), "{shown}");
    assert_eq!(row(&shown, "max_size"), "2");
    assert_ne!(row(&shown, "reads"), "0");
}

/// Returns the value in the first row of that name.
fn row<'a>(shown: &'a str, name: &str) -> &'a str {
    let mut rows = shown.lines().map(|line| line.split_whitespace());
    let mut found = rows
        .find(|row| row.clone().next() == Some(name))
        .expect("the row is shown");
    found.nth(1).expect("a row has a value")
}

#[test]
fn without_a_command_the_demo_runs_and_leaves_no_file_behind() {
    let folder = tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_cenote"));
    program.args(["--seconds", "1"]);
    for name in ["TMPDIR", "TEMP", "TMP"] {
        program.env(name, folder.path());
    }

    let output = program.output().unwrap();

    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("verify  ok: "));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_log_gets_plain_progress_lines() {
    let output = cenote(&["--seconds", "1", "--tasks", "4", "--size", "1"]);

    let said = text(&output.stderr);
    let parts = ["of 1 s", "operations", "/s", "in use", "waiting"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    assert!(!said.contains(['\r', '\x1b']), "{said:?}");
}

#[test]
fn a_length_out_of_range_is_refused_with_the_range() {
    for wrong in ["0", "3601"] {
        let output = cenote(&["--seconds", wrong]);

        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr);
        assert!(
            said.contains("--seconds") && said.contains("1..=3600"),
            "{said}"
        );
    }
}

#[test]
fn a_length_that_is_not_a_number_is_refused() {
    let output = cenote(&["demo", "--seconds", "x"]);

    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("'x'") && said.contains("--seconds"), "{said}");
}

#[test]
fn an_option_before_the_command_is_refused() {
    let output = cenote(&["--seconds", "1", "demo"]);

    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn help_names_the_demo() {
    let output = cenote(&["--help"]);

    assert!(output.status.success());
    assert!(text(&output.stdout).contains("demo"));
}

#[test]
fn the_live_page_shows_the_pool_of_the_demo() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_cenote"));
    program.args(["--seconds", "3", "--tasks", "4", "--size", "2"]);
    program.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut program = program.spawn().unwrap();
    let mut said = BufReader::new(program.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let (_, address) = line.trim_end().split_once("http://").expect("its address");
    let address = address.trim_end_matches('/');

    let mut page = TcpStream::connect(address).unwrap();
    let request =
        format!("GET /api/pools HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    page.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    page.read_to_string(&mut response).unwrap();

    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    assert!(response.contains("\"name\":\"demo\""), "{response}");
    // The program would stop at a full pipe.
    std::io::copy(&mut said, &mut std::io::sink()).unwrap();
    assert!(program.wait().unwrap().success());
    assert!(TcpStream::connect(address).is_err(), "the server has ended");
}

#[test]
fn each_scene_is_explained_while_it_happens() {
    let output = cenote(&["--seconds", "1", "--tasks", "4", "--size", "2"]);

    let said = text(&output.stderr);
    let scenes = [
        "warm-up: ",
        "spike: ",
        "leak: ",
        "outage: ",
        "nested: ",
        "drain: ",
    ];
    let places: Vec<_> = scenes.iter().map(|scene| said.find(scene)).collect();
    assert!(places.iter().all(Option::is_some), "{said}");
    assert!(places.is_sorted(), "{said}");
}

#[test]
fn json_has_the_scenes_and_the_verdict() {
    let (code, report) = json(&["--seconds", "1", "--tasks", "4", "--size", "2"]);

    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["ok"], true);
    assert_eq!(report["scenes"].as_array().unwrap().len(), 6);
}

#[test]
fn an_interrupt_drains_the_pool_and_reports() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_cenote"));
    program.args(["--seconds", "600", "--tasks", "4", "--size", "2"]);
    let program = program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let program = program.spawn().unwrap();
    until_it_hears_interrupts(program.id());

    interrupt(program.id());
    let output = program.wait_with_output().unwrap();

    let shown = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{shown}{}",
        text(&output.stderr)
    );
    assert!(
        shown.contains("interrupt ") && shown.contains("drain "),
        "{shown}"
    );
    assert!(
        shown.contains("verify  ok: ") && shown.contains("close   ok: "),
        "{shown}"
    );
}
