//! Runs another process, with a time limit.

use std::io;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::harness::bounded::Trouble;
use crate::harness::clock::now;

/// Returns the output of the process. A process that is not done within the limit is killed.
pub fn run(command: &mut Command, limit: Duration) -> Result<Output, Trouble> {
    let output = within(command, limit).map_err(|error| Trouble::Fails(error.to_string()))?;
    let output = output.ok_or(Trouble::Hangs)?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.trim().lines().last().unwrap_or_default();
    Err(Trouble::Fails(format!("{}: {last}", output.status)))
}

/// Returns `None` if the limit passed first. The output of these processes fits in the pipes.
fn within(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let started = now();
    while started.elapsed() < limit {
        if child.try_wait()?.is_some() {
            return child.wait_with_output().map(Some);
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}
