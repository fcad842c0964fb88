//! `cenote record` on the live page of the demo, and on services that cannot.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::tempdir;

use crate::interrupt::{interrupt, until_it_hears_interrupts};
use crate::top::{Demo, nowhere};
use crate::{cenote, json, refused, text};

#[test]
fn a_trace_of_a_running_service_can_be_replayed() {
    let demo = Demo::start();
    let folder = tempdir().unwrap();
    let file = folder.path().join("demo.trace");
    let file = file.to_str().unwrap();

    let output = cenote(&["record", &demo.url, "--out", file, "--seconds", "3"]);
    let (code, report) = json(&["replay", file, "--max-size", "1..4"]);

    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        said.contains("acquires of `demo` in ") && said.contains("cenote replay"),
        "{said}"
    );
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        (&report["pool"], &report["recorded_max_size"]),
        (&"demo".into(), &2.into())
    );
    assert_eq!(report["sizes"].as_array().unwrap().len(), 4);
}

#[test]
fn an_interrupt_keeps_what_was_recorded() {
    let demo = Demo::start();
    let folder = tempdir().unwrap();
    let file = folder.path().join("demo.trace");
    let mut program = Command::new(env!("CARGO_BIN_EXE_cenote"));
    program
        .args(["record", &demo.url, "--seconds", "600", "--out"])
        .arg(&file);
    let program = program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let program = program.spawn().unwrap();
    // The second block has acquires.
    let has_come = || fs::metadata(&file).is_ok_and(|file| file.len() > 200);
    let mut looks = 0..6000;
    while !has_come() {
        assert!(
            looks.next().is_some(),
            "nothing was recorded within a minute"
        );
        thread::sleep(Duration::from_millis(10));
    }

    until_it_hears_interrupts(program.id());
    interrupt(program.id());
    let output = program.wait_with_output().unwrap();
    let (code, report) = json(&["replay", file.to_str().unwrap(), "--max-size", "2"]);

    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(said.contains("was cut short"), "{said}");
    assert_eq!(code, Some(0), "{report}");
}

#[test]
fn a_place_that_cannot_be_written_to_is_one_line() {
    let demo = Demo::start();
    let record = |file| ["record", &demo.url, "--seconds", "1", "--out", file];

    refused(
        &record("/no/such/folder/a.trace"),
        1,
        &["cannot write `/no/such/folder/a.trace`"],
    );
    refused(
        &record("/dev/full"),
        1,
        &["cannot write `/dev/full`", "No space left"],
    );
}

#[test]
fn a_pool_that_is_not_there_is_wrong_usage_with_the_names() {
    let demo = Demo::start();

    refused(
        &["record", &demo.url, "--pool", "shop"],
        2,
        &["no pool `shop`", "`demo`"],
    );
}

/// Answers each request with the next response.
fn service(responses: Vec<(&'static str, String)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/pools", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (status, body) in responses {
            let (mut client, _) = listener.accept().unwrap();
            // A request is shorter than this, and has come when its first byte has.
            let _ = client.read(&mut [0; 4096]).unwrap();
            let response = format!("HTTP/1.0 {status}\r\n\r\n{body}");
            client.write_all(response.as_bytes()).unwrap();
        }
    });
    url
}

/// Returns the JSON of a page with pools of these names.
fn pools(names: &[&str]) -> String {
    let pool = |name: &&str| {
        format!(
            "{{\"number\":1,\"name\":\"{name}\",\"health\":{{\"verdict\":\"healthy\",\
             \"text\":\"\"}},\"breaker\":\"active\",\"max_size\":1,\"in_use\":0,\"idle\":0,\
             \"opening\":0,\"waiting\":0,\"oldest_wait_ms\":null,\"acquired\":0,\"timed_out\":0,\
             \"leaked\":0}}"
        )
    };
    let pools: Vec<_> = names.iter().map(pool).collect();
    format!("{{\"pools\":[{}]}}", pools.join(","))
}

#[test]
fn an_older_service_is_one_line_with_the_fix() {
    for status in ["404 Not Found", "405 Method Not Allowed"] {
        let url = service(vec![("200 OK", pools(&["shop"])), (status, String::new())]);

        refused(
            &["record", &url],
            1,
            &["cannot record", "update its `cenote-dashboard`"],
        );
    }
}

#[test]
fn a_service_that_is_cut_off_at_once_is_one_line() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("shop.trace");
    let url = service(vec![
        ("200 OK", pools(&["shop"])),
        ("200 OK", "cenot".to_owned()),
    ]);

    refused(
        &["record", &url, "--out", file.to_str().unwrap()],
        1,
        &["nothing was recorded"],
    );
}

#[test]
fn several_pools_need_a_name_and_none_cannot_be_recorded() {
    let several = service(vec![("200 OK", pools(&["shop", "jobs"]))]);
    let none = service(vec![("200 OK", pools(&[]))]);

    refused(&["record", &several], 2, &["`--pool`", "`shop`, `jobs`"]);
    refused(&["record", &none], 1, &["has no pools"]);
}

#[test]
fn a_service_that_does_not_run_is_one_line_with_the_fix() {
    refused(
        &["record", &nowhere()],
        1,
        &[
            "no answer from http://127.0.0.1:",
            "check that the service runs",
        ],
    );
    refused(
        &["record", "postgres://db"],
        2,
        &["must begin with `http://`"],
    );
}
