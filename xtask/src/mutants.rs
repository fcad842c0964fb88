//! `cargo xtask mutants`: changes the core in one place after another, and shows the changes that
//! no test notices. Not part of the gate: it takes hours.

use crate::command::{Cargo, Outcome};

/// The place of cargo-mutants where it is not installed.
const OURS: &str = "target/tools/bin/cargo-mutants";

/// The files that are changed unless others are named.
pub(crate) const CORE: &[&str] = &[
    "crates/cenote/src/ledger/*.rs",
    "crates/cenote/src/shell/*.rs",
    "crates/cenote/src/tray/*.rs",
    "crates/cenote/src/time/*.rs",
    "crates/cenote/src/lease.rs",
];

/// The settings, and the changes that no test can notice, are in `.cargo/mutants.toml`. A shard is
/// a part of all changes, such as `0/8`, so that a long run can be spread over days.
pub(crate) fn run(arguments: &[&str]) -> Outcome {
    let (shard, files) = match arguments {
        ["--shard", shard, files @ ..] => (Some(*shard), files),
        files => (None, files),
    };
    let mut mutants = find()?.with(&["--package", "cenote"]);
    if let Some(shard) = shard {
        mutants = mutants.with(&["--shard", shard]);
    }
    // nextest stops at the first test that fails.
    if Cargo::new("nextest --version").works() {
        mutants = mutants.with(&["--test-tool", "nextest"]);
    }
    for file in if files.is_empty() { CORE } else { files } {
        mutants = mutants.with(&["--file", file]);
    }
    // A change that survives these seldom fails in ten thousand.
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
