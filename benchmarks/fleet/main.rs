//! One budget of sessions over six processes: cenote's fleet beside static shares and PgBouncer.
//! `cargo xtask bench --fleet` runs it, and README.md in the folder above says how to read the
//! results.

mod clock;
mod crew;
mod event;
mod figures;
mod member;
mod observer;
mod place;
mod play;
mod plot;
mod pool;
mod results;
mod system;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use cenote_benchmarks::harness::report::machine;
use clap::Parser;

use figures::Figures;
use results::{Results, between_marks};
use system::System;

/// Measure cenote's fleet beside static shares and PgBouncer
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench --fleet")]
struct Args {
    /// Play only systems whose names contain this
    #[arg(long, default_value = "")]
    only: String,
    /// The length of each of the eight stretches of a play
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Write the results to the tree: `results.json` and `plot.svg` in `benchmarks/fleet/`, and the
    /// table of `benchmarks/README.md`
    #[arg(long, conflicts_with = "only")]
    write: bool,
    /// Play nothing, and draw the table and the plot of the tree from its `results.json`
    #[arg(long, conflicts_with_all = ["only", "write"])]
    redraw: bool,
    /// Cargo passes it
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let outcome = match env::var(member::VARIABLE) {
        Ok(orders) => member::run(&orders),
        Err(_) => run(&Args::parse()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    if args.redraw {
        let json = fs::read_to_string(folder.join("fleet/results.json"));
        let json = json.map_err(|error| error.to_string())?;
        let results = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        return write(&results, folder);
    }
    let stretch = Duration::try_from_secs_f64(args.seconds).map_err(|error| error.to_string())?;
    let (date, machine) = (machine::today(), machine::describe());
    let mut results = Results::new(date, machine, machine::load(), args.seconds);
    for system in System::ALL {
        if system.name().contains(&args.only) {
            eprintln!("{}", system.name());
            let story = play::play(system, stretch)?;
            results.systems.push(Figures::of(&story));
        }
    }
    results.load[1] = machine::load();
    println!("{}", results.table());
    for figures in &results.systems {
        for error in &figures.errors {
            println!("{}: {error}", figures.system);
        }
    }
    if args.write {
        write(&results, folder)?;
    }
    Ok(())
}

fn write(results: &Results, folder: &Path) -> Result<(), String> {
    let put = |file: PathBuf, text: String| {
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
    };
    let json = results.to_json().map_err(|error| error.to_string())?;
    put(folder.join("fleet/results.json"), json)?;
    put(folder.join("fleet/plot.svg"), plot::svg(results))?;
    let readme = folder.join("README.md");
    let text = fs::read_to_string(&readme).map_err(|error| error.to_string())?;
    let text = between_marks(&text, &results.to_markdown())
        .ok_or_else(|| format!("{}: the marks of the fleet are missing", readme.display()))?;
    put(readme, text)
}
