//! S7: instructions per trip, counted by callgrind. They repeat, whatever else the machine does.

use std::env;
use std::process::Command;
use std::time::Duration;

use crate::bounded::Trouble;
use crate::child;
use crate::contender::Contender;

/// So many that how it begins does not count.
const TRIPS: u32 = 40_000;

/// Under callgrind everything is fifty times slower.
const LIMIT: Duration = Duration::from_secs(120);

/// Under callgrind threads take turns, and one that a pool counts on may come late. The best of some tries is the trip as it is.
const TRIES: usize = 3;

/// What the gate lets cenote use for one trip, some more than it needs. Two readings of the coarse clock and the question whether the
/// resource is broken, before each loan, are a quarter of it. Lower it when the trip gets cheaper.
pub const GUARD: f64 = 340.0;

/// Of one trip, as in S1: a process that makes them, less one that makes none.
pub fn per_trip(contender: &Contender) -> Result<f64, Trouble> {
    let none = count(contender, 0)?;
    let mut least = u64::MAX;
    for _ in 0..TRIES {
        least = least.min(count(contender, TRIPS)?.saturating_sub(none));
    }
    Ok(least as f64 / f64::from(TRIPS))
}

/// Whether there is a callgrind. If not, what to do.
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

/// Callgrind says `==123== Collected : 456`.
fn collected(said: &str) -> Option<u64> {
    let mut lines = said.lines().filter(|line| line.contains("Collected"));
    lines.next()?.rsplit(':').next()?.trim().parse().ok()
}
