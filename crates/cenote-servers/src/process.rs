//! Sends signals to processes and reads their state, by number. The shell sends the signals, and
//! `/proc` has the state.

use std::fs;
use std::io;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::now;

/// How often to look again.
const PAUSE: Duration = Duration::from_millis(2);

/// Sends a signal, by its name without `SIG`. It is no error if a process is gone.
pub(crate) fn signal(name: &str, pids: &[u32]) -> io::Result<()> {
    if pids.is_empty() {
        return Ok(());
    }
    // The shell's own `kill` exists even where no program of that name does.
    let mut shell = Command::new("sh");
    shell.args(["-c", "kill -s \"$0\" \"$@\" 2>/dev/null", name]);
    shell.args(pids.iter().map(u32::to_string));
    shell.status().map(drop)
}

/// Returns the children of this process that still run.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let listing = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let listing = listing.unwrap_or_default();
    listing
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// Returns whether the process has ended. A zombie has ended too.
pub(crate) fn is_gone(pid: u32) -> bool {
    matches!(state(pid), None | Some('Z' | 'X'))
}

/// Returns whether the process is stopped or has ended.
pub(crate) fn is_still(pid: u32) -> bool {
    matches!(state(pid), None | Some('T' | 'Z' | 'X'))
}

/// Returns the system's letter for the state of the process.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The state follows the name, which is in brackets and may contain anything.
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Returns whether `holds` became true within the limit.
pub(crate) fn wait_until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let started = now();
    loop {
        if holds() {
            return true;
        }
        if started.elapsed() >= limit {
            return false;
        }
        thread::sleep(PAUSE);
    }
}
