//! `cenote top` on the live page of the demo.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use crate::interrupt::interrupt;
use crate::{cenote, json, refused, text};

/// A demo that runs until it is dropped, and the address of its page.
pub(crate) struct Demo {
    program: Child,
    pub(crate) url: String,
}

impl Demo {
    pub(crate) fn start() -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_cenote"));
        program.args(["--seconds", "600", "--tasks", "4", "--size", "2"]);
        program.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut program = program.spawn().unwrap();
        let mut said = BufReader::new(program.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        // The program would stop at a full pipe.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let url = line.trim_end().rsplit(' ').next().unwrap().to_owned();
        Self { program, url }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        interrupt(self.program.id());
        self.program.wait().unwrap();
    }
}

#[test]
fn a_table_shows_the_pools_of_the_service() {
    let demo = Demo::start();

    let output = cenote(&["top", &demo.url, "--once"]);
    let (code, pools) = json(&["top", &demo.url]);

    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(shown.contains("pool") && shown.contains("demo"), "{shown}");
    assert_eq!(code, Some(0));
    assert_eq!(pools[0]["name"], "demo");
    assert_eq!(pools[0]["max_size"], 2);
}

/// Returns an address at which nothing listens.
pub(crate) fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}

#[test]
fn a_service_that_does_not_run_is_one_line_with_the_fix() {
    refused(
        &["top", &nowhere(), "--once"],
        1,
        &[
            "no answer from http://127.0.0.1:",
            "check that the service runs",
        ],
    );
}

#[test]
fn a_wrong_path_is_one_line_with_the_fix() {
    let demo = Demo::start();

    refused(
        &["top", &format!("{}elsewhere", demo.url), "--once"],
        1,
        &["is no live page of cenote: check the path", "404"],
    );
}

#[test]
fn an_address_that_is_no_page_is_wrong_usage() {
    refused(&["top", "postgres://db"], 2, &["must begin with `http://`"]);
}
