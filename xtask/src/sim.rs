//! `cargo xtask sim`: plays seeds of the whole-pool simulation, optimised, and checks the ledger's
//! invariants after every step.

use crate::command::{Cargo, Outcome};

/// The arguments are those of the program: `--seeds N`, `--from K`, or `--seed S`, with `--local`
/// for pools of one thread. It is built in a folder of its own, so that the other builds stay as
/// they are.
pub(crate) fn run(args: &[&str]) -> Outcome {
    Cargo::new("run --quiet --release --target-dir target/sim -p cenote-testkit --features sound")
        .with(&["--bin", "sim", "--"])
        .with(args)
        .variable("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        .run()
}
