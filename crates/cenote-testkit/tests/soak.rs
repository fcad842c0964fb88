//! A short soak is flat, and the verdict can fail: each kind of leak is found and named. Each soak
//! is a process of its own, because it counts what a process has.

use std::process::{Command, Output};

fn soak(args: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_soak"))
        .args(args)
        .output()
        .expect("the program was built for this test");
    // Standard error has the panics of tasks whose result is not used.
    let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let said = said.concat();
    (output, said)
}

#[track_caller]
fn assert_found(leak: &str, column: &str) {
    let (output, said) = soak(&["--seconds", "4", "--leak", leak]);

    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("NOT FLAT: {column} went")), "{said}");
}

#[test]
fn under_load_nothing_grows() {
    let (output, said) = soak(&["--seconds", "10"]);

    assert!(output.status.success(), "{said}");
    assert!(said.contains("\nFLAT: "), "{said}");
}

#[test]
fn memory_that_leaks_is_noticed() {
    assert_found("allocation", "heap allocations");
}

#[test]
fn a_buffer_that_grows_is_noticed() {
    assert_found("buffer", "heap bytes");
}

#[test]
fn a_task_that_leaks_is_noticed() {
    assert_found("task", "tasks");
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_leaks_is_noticed() {
    assert_found("fd", "fds");
}

#[test]
#[cfg(target_os = "linux")]
fn a_thread_that_leaks_is_noticed() {
    assert_found("thread", "threads");
}

#[test]
fn a_resource_that_leaks_is_noticed() {
    assert_found("resource", "resources");
}

#[test]
fn an_acquire_that_never_ends_is_noticed() {
    let (output, said) = soak(&["--seconds", "4", "--leak", "acquire"]);

    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("LATE: hangs: an acquire of 0ns took"),
        "{said}"
    );
}

#[test]
fn a_soak_with_wrong_arguments_is_not_started() {
    for args in [
        &["--minutes"][..],
        &["--minutes", "soon"],
        &["--hours", "1"],
    ] {
        let (output, _) = soak(args);

        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}
