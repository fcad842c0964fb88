//! `cargo xtask screenshots`: takes pictures of the live page in a real browser, for its README.

use crate::command::{Cargo, Outcome};

/// The load runs for some minutes before, so that the charts are full.
pub(crate) fn run() -> Outcome {
    Cargo::new("run --quiet -p cenote-dashboard --example screenshots").run()
}
