//! `cargo xtask gate`: all checks before a commit, in order; it stops at the first failure.

use crate::command::{Cargo, Outcome, now};
use crate::{bench, features, floors, model, test, tidy};

type Step = (&'static str, fn() -> Outcome);

const STEPS: &[Step] = &[
    ("fmt", || Cargo::new("fmt --all --check").run()),
    ("clippy", || {
        Cargo::new("clippy --workspace --all-targets --all-features -- -D warnings").run()
    }),
    ("test", || test::run(&[])),
    ("model", model::run),
    ("guard", bench::guard),
    ("doc", || {
        let doc = Cargo::new("doc --workspace --no-deps --all-features");
        doc.variable("RUSTDOCFLAGS", "-D warnings").run()
    }),
    ("features", features::run),
    ("floors", floors::check),
    ("tidy", tidy::run),
];

pub(crate) fn run() -> Outcome {
    let mut times = Vec::new();
    for (step, run) in STEPS {
        println!("\n== {step} ==");
        let started = now();
        let outcome = run();
        let seconds = started.elapsed().as_secs_f64();
        println!("== {step}: {seconds:.1} s ==");
        outcome.map_err(|failure| format!("{step}: {failure}"))?;
        times.push((step, seconds));
    }

    println!("\n{:<10}{:>8}", "step", "seconds");
    for (step, seconds) in times {
        println!("{step:<10}{seconds:>8.1}");
    }
    Ok(())
}
