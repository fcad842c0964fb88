//! `cargo xtask fuzz`: makes up configurations and ledger histories, many more than the tests do,
//! and others every time.

use std::time::Duration;

use crate::command::{Cargo, Outcome, now};

/// Cases of one round. A round takes some seconds, so that the time limit is kept.
const ROUND: u64 = 5_000;
/// A history is quicker than a case by this factor.
const HISTORIES_PER_CASE: u64 = 10;

/// It is built in a folder of its own, so that the other builds stay as they are. It is optimised,
/// and debug assertions stay on.
const TEST: &str = "--config profile.test.opt-level=2 test --quiet --target-dir target/fuzz -p cenote --features serde";

pub(crate) fn run(args: &[&str]) -> Outcome {
    match args {
        [] => run_for(1),
        ["--minutes", minutes] => run_for(number(minutes)?),
        ["--cases", cases] => run_cases(number(cases)?),
        _ => Err("usage: cargo xtask fuzz [--minutes N | --cases N]".into()),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let number = text.replace('_', "").parse();
    number.map_err(|_| format!("`{text}` is no number"))
}

fn run_for(minutes: u64) -> Outcome {
    let (started, limit) = (now(), Duration::from_secs(minutes.saturating_mul(60)));
    let mut cases = 0;
    while started.elapsed() < limit {
        run_cases(ROUND)?;
        cases += ROUND;
        println!(
            "== {:.0?} of {limit:.0?}: {cases} cases of each kind, {} histories ==",
            started.elapsed(),
            cases * HISTORIES_PER_CASE
        );
    }
    Ok(())
}

fn run_cases(cases: u64) -> Outcome {
    let histories = cases * HISTORIES_PER_CASE;
    Cargo::new(TEST)
        .with(&["--test", "fuzz"])
        .variable("PROPTEST_CASES", cases.to_string().leak())
        .run()?;
    // With output, because the test prints its first seed.
    Cargo::new(TEST)
        .with(&["--lib", "histories", "--", "--nocapture"])
        .variable("CENOTE_HISTORIES", histories.to_string().leak())
        .run()
}
