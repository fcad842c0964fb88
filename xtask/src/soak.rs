//! `cargo xtask soak`: puts real pools under mixed load for some minutes, optimised, and checks the
//! ledger's invariants after every step.

use crate::command::{Cargo, Outcome};

/// The arguments are those of the program: `--minutes N`. It shares its folder with the simulation,
/// which is built in the same way.
pub(crate) fn run(args: &[&str]) -> Outcome {
    Cargo::new("run --quiet --release --target-dir target/sim -p cenote-testkit --features sound")
        .with(&["--bin", "soak", "--"])
        .with(args)
        .variable("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        .run()
}
