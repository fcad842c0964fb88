//! `cargo xtask mutants`: changes the core in one place after another, and looks whether a test notices. Not part of the gate: it takes hours.

use crate::command::{Cargo, Outcome};

/// Where it is put if there is none.
const OURS: &str = "target/tools/bin/cargo-mutants";

/// What is changed if nothing else is asked for.
const CORE: &[&str] = &[
    "crates/cenote/src/ledger/*.rs",
    "crates/cenote/src/acquire.rs",
    "crates/cenote/src/lease.rs",
    "crates/cenote/src/loan.rs",
    "crates/cenote/src/tray.rs",
    "crates/cenote/src/clock.rs",
];

/// The settings, and the changes that cannot be noticed, are in `.cargo/mutants.toml`.
pub(crate) fn run(files: &[&str]) -> Outcome {
    let mut mutants = find()?.with(&["--package", "cenote"]);
    // It stops at the first test that fails.
    if Cargo::new("nextest --version").works() {
        mutants = mutants.with(&["--test-tool", "nextest"]);
    }
    for file in if files.is_empty() { CORE } else { files } {
        mutants = mutants.with(&["--file", file]);
    }
    // What survives these seldom dies in ten thousand.
    mutants.variable("CENOTE_HISTORIES", "3000").run()
}

fn find() -> Result<Cargo, String> {
    if Cargo::new("mutants --version").works() {
        return Ok(Cargo::new("mutants"));
    }
    if !Cargo::tool(OURS, "mutants --version").works() {
        println!("cargo-mutants is not installed: it is built once, in target/tools");
        Cargo::new("install --locked cargo-mutants --root target/tools").run()?;
    }
    Ok(Cargo::tool(OURS, "mutants"))
}
