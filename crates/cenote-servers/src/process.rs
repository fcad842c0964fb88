//! Signals to processes and looks at them, by number, without foreign code: the shell sends, `/proc` tells.

use std::fs;
use std::io;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::now;

/// How often to look again.
const PAUSE: Duration = Duration::from_millis(2);

/// Sends a signal, by its name without `SIG`. A process that is gone is no error.
pub(crate) fn signal(name: &str, pids: &[u32]) -> io::Result<()> {
    if pids.is_empty() {
        return Ok(());
    }
    // The shell's own `kill` is there also where no program of that name is.
    let mut shell = Command::new("sh");
    shell.args(["-c", "kill -s \"$0\" \"$@\" 2>/dev/null", name]);
    shell.args(pids.iter().map(u32::to_string));
    shell.status().map(drop)
}

/// The processes that this one has started and that still run.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let listing = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let listing = listing.unwrap_or_default();
    listing
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// A process that has ended and that its parent has not asked after is gone too.
pub(crate) fn is_gone(pid: u32) -> bool {
    matches!(state(pid), None | Some('Z' | 'X'))
}

/// Whether it was told to hold still and does, or has ended.
pub(crate) fn is_still(pid: u32) -> bool {
    matches!(state(pid), None | Some('T' | 'Z' | 'X'))
}

/// The letter that the system has for it.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // It follows the name, which stands in brackets and may hold anything.
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether it came true within the limit.
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
