//! Plays a scenario in several processes and takes the median of their figures.
//!
//! Some figures depend on a chance that falls once per process, such as the addresses of code and
//! heap. All rounds of one process share that chance, so more rounds do not even it out.

#[cfg(test)]
mod tests;

use std::env;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::harness::bounded::Trouble;
use crate::harness::child;
use crate::harness::contender::Contender;
use crate::harness::effort::Effort;
use crate::harness::progress::Progress;
use crate::harness::results::{Figure, Line};
use crate::harness::rounds::FIGURES;
use crate::harness::runtime::Runtime;
use crate::harness::scenarios::Measured;
use crate::harness::stats::{median, minimum};

/// How many processes play a scenario.
pub const COUNT: usize = 5;

/// The option that makes the program play its share and print it by [`to_text`].
pub const OPTION: &str = "--share";

/// A process plays for some seconds, or for a minute if most of its rounds are noisy.
const LIMIT: Duration = Duration::from_secs(300);

/// Starts one process after another, and returns a line for each pool on each runtime.
pub fn medians(scenario: &'static str, contenders: &[Contender], effort: Effort) -> Measured {
    let mut progress = Progress::new(scenario, "processes", COUNT);
    let mut shares = Vec::with_capacity(COUNT);
    for nth in 0..COUNT {
        let share = play_share(scenario, contenders, effort, nth);
        shares.push(share.map_err(|trouble| format!("{scenario}: a process {trouble}"))?);
        progress.step();
    }
    let mut lines = Vec::new();
    for runtime in Runtime::ALL.map(Runtime::name) {
        lines.extend(contenders.iter().map(|contender| Line {
            scenario,
            runtime,
            pool: contender.name,
            outcome: combined(&shares, runtime, contender.name),
        }));
    }
    Ok(lines)
}

/// Returns the lines as text for the process that started this one.
pub fn to_text(lines: &[Line]) -> String {
    let lines: Vec<Value> = lines.iter().map(Line::to_json).collect();
    Value::Array(lines).to_string()
}

fn play_share(
    scenario: &str,
    contenders: &[Contender],
    effort: Effort,
    nth: usize,
) -> Result<Value, Trouble> {
    let own = env::current_exe().map_err(|error| Trouble::Fails(error.to_string()))?;
    let pools: Vec<&str> = contenders.iter().map(|contender| contender.name).collect();
    let seed = effort.seed + nth as u64;
    let mut command = Command::new(own);
    command.args([scenario, OPTION, "--seed", &seed.to_string()]);
    command.args(["--pools", &pools.join(",")]);
    if effort.quick {
        command.arg("--quick");
    }
    let said = child::run(&mut command, LIMIT)?.stdout;
    serde_json::from_slice(&said).map_err(|error| Trouble::Fails(error.to_string()))
}

/// Returns the figures of one pool, or its trouble in one of the processes.
fn combined(shares: &[Value], runtime: &str, pool: &str) -> Result<Vec<Figure>, Trouble> {
    let of_pool = |share: &&Value| share["runtime"] == runtime && share["pool"] == pool;
    let mut lines = Vec::with_capacity(shares.len());
    for share in shares {
        let line = share.as_array().into_iter().flatten().find(of_pool);
        let line = line.ok_or_else(|| Trouble::Fails("a process left it out".to_owned()))?;
        if let Some(trouble) = line["trouble"].as_str() {
            return Err(Trouble::read(trouble));
        }
        lines.push(line);
    }
    let figures = FIGURES.map(|name| {
        let values = lines.iter().map(|line| line["figures"][name].as_f64());
        let values: Vec<f64> = values.flatten().collect();
        let figure = match name {
            "ns min" => minimum(&values),
            "quiet rounds" => Some(values.iter().sum()),
            _ => median(&values),
        };
        (name, figure.unwrap_or(f64::NAN))
    });
    Ok(figures.to_vec())
}
