//! `cargo xtask gate`: all checks before a commit, in order; it stops at the first failure.

use std::env;
use std::fs;

use crate::beside::Beside;
use crate::command::{Cargo, LINTED, Outcome, now};
use crate::{release, test, tidy};

/// How a step is run.
enum Run {
    InTurn(fn() -> Outcome),
    /// A command of xtask that starts with the step `from`, and must have ended in its own turn.
    /// While tests wait for servers, it uses their time.
    Beside {
        command: &'static str,
        from: &'static str,
    },
}

/// A step with a build folder of its own.
const fn beside_all(command: &'static str) -> Run {
    let from = "fmt";
    Run::Beside { command, from }
}

/// A step that is built within the time in which tests wait.
const fn beside_tests(command: &'static str) -> Run {
    let from = "test";
    Run::Beside { command, from }
}

const STEPS: &[(&str, Run)] = &[
    ("fmt", Run::InTurn(|| Cargo::new("fmt --all --check").run())),
    ("tidy", Run::InTurn(tidy::run)),
    ("build", Run::InTurn(build)),
    ("package", Run::InTurn(release::pack)),
    ("test", Run::InTurn(|| test::run_all(LINTED))),
    ("guard", beside_tests("bench --guard")),
    ("model", beside_all("model")),
    ("floors", beside_all("floors")),
    ("api", beside_tests("api")),
];

/// Builds what the tests run, and lints it. A separate clippy would compile all dependencies again.
fn build() -> Outcome {
    let build = Cargo::new("build --quiet --workspace --all-targets --all-features");
    build.with(LINTED).run()
}

pub(crate) fn run() -> Outcome {
    // Read before the build, which replaces the file of this program.
    let program = env::current_exe().map_err(|error| format!("xtask is not found ({error})"))?;
    let mut running = Vec::new();
    let mut times = Vec::new();
    for (step, run) in STEPS {
        for (_, other) in STEPS {
            if let Run::Beside { command, from } = other
                && from == step
            {
                running.push((*command, Beside::start(&program, command)?));
            }
        }
        println!("\n== {step} ==");
        let (started, used) = (now(), used_by_children());
        let outcome = match run {
            Run::InTurn(run) => run(),
            Run::Beside { command, .. } => running
                .iter_mut()
                .find(|(it, _)| it == command)
                .map_or(Ok(()), |(_, beside)| beside.finish()),
        };
        let seconds = started.elapsed().as_secs_f64();
        println!("== {step}: {seconds:.1} s ==");
        outcome.map_err(|failure| format!("{step}: {failure}"))?;
        times.push((step, seconds, used_by_children() - used));
    }

    println!("\n{:<10}{:>8}{:>14}", "step", "seconds", "of all cores");
    for (step, seconds, used) in times {
        println!("{step:<10}{seconds:>8.1}{used:>14.1}");
    }
    Ok(())
}

/// The processor time of all children that have ended, in seconds. A step beside the others is
/// counted where its turn comes. Only Linux tells; elsewhere it is 0.
fn used_by_children() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program is in brackets, and what follows are numbers.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let of_children = fields.split_whitespace().skip(13).take(2);
    let ticks: f64 = of_children.filter_map(|it| it.parse::<f64>().ok()).sum();
    ticks / TICKS_PER_SECOND
}
