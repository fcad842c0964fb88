//! Ctrl-C in the middle of the work.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::text;

/// Runs a command that would take long, and interrupts it.
#[track_caller]
fn ends_with_one_line(args: &[&str]) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_cenote"));
    let program = program.args(args).stdout(Stdio::piped());
    let program = program.stderr(Stdio::piped()).spawn().unwrap();
    until_it_hears_interrupts(program.id());

    interrupt(program.id());
    let output = program.wait_with_output().unwrap();

    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{args:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("interrupted") && said.contains("run it again"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn an_interrupt_ends_a_measurement_with_one_line() {
    ends_with_one_line(&["bench", ":memory:", "--seconds", "600"]);
    ends_with_one_line(&["bench", ":memory:", "--seconds", "600", "--rate", "100"]);
}

#[test]
fn an_interrupt_ends_a_search_for_the_size_with_one_line() {
    ends_with_one_line(&["tune", ":memory:", "--step-ms", "600000"]);
}

#[test]
fn an_interrupt_ends_the_wait_for_an_answer_with_one_line() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();

    ends_with_one_line(&["top", &format!("http://{address}/"), "--once"]);
    #[cfg(feature = "postgres")]
    {
        let url = format!("postgres://app@{address}/shop");
        ends_with_one_line(&["doctor", &url]);
        ends_with_one_line(&["demo", "--url", &url]);
    }
}

pub(crate) fn interrupt(pid: u32) {
    send("INT", pid);
}

/// Sends a signal, such as `INT`.
pub(crate) fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill")
        .args(["-s", signal, &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Waits until the program has a handler for the signal, which the system shows as a bit.
pub(crate) fn until_it_hears_interrupts(pid: u32) {
    for _ in 0..3000 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        if caught & 0b10 != 0 {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("never: the program hears interrupts");
}
