//! S7: instructions per trip, counted by callgrind. The load of the machine does not change them.

use std::env;
use std::process::Command;
use std::time::Duration;

use crate::harness::bounded::Trouble;
use crate::harness::child;
use crate::harness::contender::Contender;

/// So many that the start of the process does not count.
const TRIPS: u32 = 40_000;

/// Under callgrind everything is about fifty times slower.
const LIMIT: Duration = Duration::from_secs(120);

/// Under callgrind threads take turns, and a thread of a pool may come late. The best of several
/// tries is the trip itself.
const TRIES: usize = 3;

/// The gate's limits for cenote, a little more than one trip needs. A quarter of each pays for two
/// readings of the coarse clock and for the question whether the resource is broken. Lower them
/// when the trip gets cheaper.
pub const GUARD: [(&str, f64); 2] = [("cenote", 315.0), ("cenote-local", 275.0)];

/// Returns the instructions of one trip as in S1: those of a process that makes trips, less those
/// of a process that makes none.
pub fn per_trip(contender: &Contender) -> Result<f64, Trouble> {
    let none = count(contender, 0)?;
    let mut least = u64::MAX;
    for _ in 0..TRIES {
        least = least.min(count(contender, TRIPS)?.saturating_sub(none));
    }
    Ok(least as f64 / f64::from(TRIPS))
}

/// Returns whether callgrind is installed. The error says what to do.
pub fn available() -> Result<(), String> {
    let found = child::run(Command::new("valgrind").arg("--version"), LIMIT);
    found.map(drop).map_err(|_| {
        "S7 counts instructions with callgrind, and valgrind is not installed: install the package `valgrind`".to_owned()
    })
}

fn count(contender: &Contender, trips: u32) -> Result<u64, Trouble> {
    let own = env::current_exe().map_err(|error| Trouble::Fails(error.to_string()))?;
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        // Threads of a pool get their turn, as they do without callgrind.
        .arg("--fair-sched=try")
        .arg(own)
        .args([
            "--make-trips",
            &trips.to_string(),
            "--pools",
            contender.name,
        ]);
    let said = child::run(&mut command, LIMIT)?.stderr;
    let said = String::from_utf8_lossy(&said);
    collected(&said).ok_or_else(|| Trouble::Fails("callgrind did not say what it collected".into()))
}

/// Reads a line of callgrind such as `==123== Collected : 456`.
fn collected(said: &str) -> Option<u64> {
    let mut lines = said.lines().filter(|line| line.contains("Collected"));
    lines.next()?.rsplit(':').next()?.trim().parse().ok()
}
