//! `cargo xtask model`: plays the core's threads and tasks and the budget of keyed pools under
//! shuttle in many orders, and the hand-over in every order. The long form plays many more and runs
//! the ledger's tests under Miri.

use crate::command::{Cargo, Outcome};

/// It is built in a folder of its own, so that the other builds stay as they are.
const PLAY: &str = "test --target-dir target/model -p cenote --test model";

/// The programs of the hand-over. Each uses all cores and prints how many orders it has.
const EXHAUST: &str =
    "test --target-dir target/model -p cenote --lib handover -- --nocapture --test-threads 1";

/// The budget of keyed pools, where threads meet.
const BUDGET: &str = "test --target-dir target/model -p cenote-keyed --lib model";

/// The settings for far more rounds than by default.
const LONG: &str = "--config crates/cenote/tests/model/long.toml";

pub(crate) fn run() -> Outcome {
    under_shuttle(PLAY).run()?;
    under_shuttle(BUDGET).run()?;
    under_shuttle(EXHAUST).run()
}

pub(crate) fn run_long() -> Outcome {
    let lints = "clippy --target-dir target/model -p cenote --lib --test model -- -D warnings";
    under_shuttle(lints).run()?;
    under_shuttle(&format!("{LONG} {PLAY}")).run()?;
    under_shuttle(&format!("{LONG} {EXHAUST}")).run()?;
    run_miri()
}

fn under_shuttle(line: &str) -> Cargo {
    let optimised = format!("--config profile.dev.opt-level=1 {line}");
    Cargo::new(&optimised).variable("RUSTFLAGS", "--cfg cenote_model -D warnings")
}

fn run_miri() -> Outcome {
    if !Cargo::new("+nightly miri --version").works() {
        println!("!! MIRI IS MISSING: the ledger was NOT run under it");
        println!("!! to have it: rustup component add --toolchain nightly miri");
        return Ok(());
    }
    Cargo::new("+nightly miri test --target-dir target/miri -p cenote --lib ledger").run()
}
