//! `cenote demo --url`: the shop on a real server, which has nothing of it in the end.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};

use cenote_servers::{mariadb, postgres, redis};

use super::admin;
use crate::interrupt::send;
use crate::{json, refused, text};

fn has_schema(url: &str, name: &str) -> bool {
    let sql = format!("select 1 from pg_namespace where nspname = '{name}'");
    admin::postgres(url, &sql).is_some()
}

fn has_database(url: &str, name: &str) -> bool {
    admin::mysql(url, &format!("SHOW DATABASES LIKE '{name}'")).is_some()
}

fn has_keys(url: &str, name: &str) -> bool {
    admin::redis(url, &format!("KEYS {name}")) != "*0"
}

/// Returns the name between the first two backticks.
fn name_in(text: &str) -> &str {
    text.split('`').nth(1).unwrap()
}

/// Plays the whole demo. The shop must be where the report says, and must be gone.
#[track_caller]
fn plays_and_removes(url: &str, has: fn(&str, &str) -> bool) {
    let args = ["demo", "--seconds", "1", "--tasks", "8", "--size", "2"];

    let (code, report) = json(&[&args[..], &["--url", url]].concat());

    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["scenes"].as_array().unwrap().len(), 6, "{report}");
    assert!(report["writes"].as_u64().unwrap() > 0, "{report}");
    let name = name_in(report["shop"].as_str().unwrap());
    assert!(name.starts_with("cenote_demo_"), "{report}");
    assert!(!has(url, name), "{name} is still there");
}

/// A demo whose customers are in the shop.
struct Playing {
    program: Child,
    said: BufReader<ChildStderr>,
    name: String,
}

impl Playing {
    fn start(url: &str) -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_cenote"));
        program.args([
            "--seconds",
            "600",
            "--tasks",
            "4",
            "--size",
            "2",
            "--url",
            url,
        ]);
        program.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut program = program.spawn().unwrap();
        let mut said = BufReader::new(program.stderr.take().unwrap());
        let mut name = String::new();
        let mut line = String::new();
        while !line.starts_with("warm-up: ") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended");
            if line.starts_with("the shop: ") {
                name = name_in(&line).to_owned();
            }
        }
        Self {
            program,
            said,
            name,
        }
    }

    /// Sends a signal, and returns the exit code and the last line.
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        send(signal, self.program.id());
        let last = self.said.lines().map(Result::unwrap).last();
        let status = self.program.wait().unwrap();
        (status.code(), last.unwrap())
    }
}

#[track_caller]
fn removes_after(signal: &str, url: &str, has: fn(&str, &str) -> bool) {
    let playing = Playing::start(url);
    let name = playing.name.clone();
    assert!(has(url, &name), "{name} is in use");

    let (code, last) = playing.end(signal);

    assert_eq!(code, Some(0), "{last}");
    assert!(!has(url, &name), "{name} is still there");
}

#[test]
fn the_scenes_play_on_postgresql_in_a_schema_that_is_dropped() {
    plays_and_removes(postgres::find().unwrap().url(), has_schema);
}

#[test]
fn the_scenes_play_on_mariadb_in_a_database_that_is_dropped() {
    plays_and_removes(mariadb::find().unwrap().url(), has_database);
}

#[test]
fn the_scenes_play_on_redis_in_keys_that_are_deleted() {
    plays_and_removes(redis::find().unwrap().url(), has_keys);
}

#[test]
fn an_interrupt_drops_the_schema() {
    removes_after("INT", postgres::find().unwrap().url(), has_schema);
}

#[test]
fn a_termination_drops_the_database() {
    removes_after("TERM", mariadb::find().unwrap().url(), has_database);
}

#[test]
fn a_terminal_that_closes_deletes_the_keys() {
    removes_after("HUP", redis::find().unwrap().url(), has_keys);
}

#[test]
fn a_server_that_dies_is_one_line_that_says_what_is_left() {
    let mut server = redis::start().unwrap();
    let playing = Playing::start(server.url());
    let name = playing.name.clone();
    server.kill().unwrap();

    let (code, last) = playing.end("INT");

    assert_eq!(code, Some(1), "{last}");
    let left = format!("keys `{name}` on {} could not be removed: ", server.url());
    let by_hand = format!("remove it by `DEL {}", name.trim_end_matches('*'));
    assert!(last.starts_with("error: "), "{last}");
    assert!(last.contains(&left) && last.contains(&by_hand), "{last}");
}

#[test]
fn a_role_that_may_make_no_schema_is_told_so() {
    let server = postgres::start().unwrap();
    admin::postgres(server.url(), "create role looker login");
    let url = server.url().replacen("postgres@", "looker@", 1);

    let parts = [
        "permission denied",
        "the right to create a schema",
        "leave `--url` out",
    ];
    refused(&["demo", "--url", &url], 1, &parts);
}

#[test]
fn a_user_that_may_make_no_database_is_told_so() {
    let server = mariadb::start().unwrap();
    admin::mysql(server.url(), "CREATE USER looker@'127.0.0.1'");
    let url = server.url().replacen("root@", "looker@", 1);

    let parts = [
        "denied",
        "the right to create a database",
        "leave `--url` out",
    ];
    refused(&["demo", "--url", &url], 1, &parts);
}

#[test]
fn a_user_that_may_use_no_such_keys_is_told_so() {
    let server = redis::start().unwrap();
    let user = "ACL SETUSER looker on >secret +@all ~orders:*";
    assert_eq!(admin::redis(server.url(), user), "+OK");
    let url = server
        .url()
        .replacen("redis://", "redis://looker:secret@", 1);

    let parts = [
        "looker:***",
        "no permissions",
        "keys that begin with `cenote_demo_`",
        "leave `--url` out",
    ];
    refused(&["demo", "--url", &url], 1, &parts);
}

#[test]
fn a_file_of_sqlite_is_refused_with_the_reason() {
    refused(
        &["demo", "--url", "sqlite://shop.db"],
        2,
        &["a SQLite file of its own", "leave `--url` out"],
    );
}

#[test]
fn a_report_for_people_says_where_the_shop_was() {
    let server = redis::start().unwrap();
    let args = ["--seconds", "1", "--tasks", "4", "--size", "2", "--url"];

    let output = crate::cenote(&[&args[..], &[server.url()]].concat());

    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{shown}{said}");
    assert!(shown.contains("the shop was keys `cenote_demo_"), "{shown}");
    assert!(said.contains("a transaction of Redis cannot"), "{said}");
    assert!(said.contains("cuts its own line to the server"), "{said}");
    assert_eq!(admin::redis(server.url(), "DBSIZE"), ":0");
}
