//! The program behind `cargo xtask bench`.

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cenote_benchmarks::harness::contender::Contender;
use cenote_benchmarks::harness::effort::Effort;
use cenote_benchmarks::harness::peer::Kind;
use cenote_benchmarks::harness::processes;
use cenote_benchmarks::harness::report::document::{self, Run};
use cenote_benchmarks::harness::report::{machine, summary, table};
use cenote_benchmarks::harness::scenarios::{ALL, Scenario, instructions};
use cenote_benchmarks::{contender, contenders};
use clap::Parser;

/// Measure cenote beside its peers
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
struct Args {
    /// Scenarios by name, such as `S1`; all without a name
    scenarios: Vec<String>,
    /// Play fewer and shorter rounds, for a first look
    #[arg(long)]
    quick: bool,
    /// Measure only pools whose names contain one of these
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pools: Vec<String>,
    /// Write the figures to this file as well
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the results to the tree: `results.json`, `chart.svg` and the tables of `README.md` in
    /// `benchmarks/`
    #[arg(long, conflicts_with_all = ["scenarios", "pools"])]
    write: bool,
    /// Seed of the order of the rounds, and of the storm
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only count cenote's instructions per trip, and fail if there are too many
    #[arg(long, conflicts_with_all = ["scenarios", "pools", "json", "write"])]
    guard: bool,
    /// Make so many trips under a tool that counts
    #[arg(long, hide = true)]
    make_trips: Option<u32>,
    /// Play the share of one of several processes, and print it for the process that started it
    #[arg(long, hide = true)]
    share: bool,
}

fn main() -> ExitCode {
    // A pool that panics becomes an entry in the table, so its panic is one line without a
    // backtrace.
    panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    let pools = chosen_pools(&args.pools)?;
    if let Some(trips) = args.make_trips {
        (pools[0].bare_trips)(trips);
        return Ok(());
    }
    if args.guard {
        return guard();
    }
    let scenarios = chosen_scenarios(&args.scenarios)?;
    let effort = Effort {
        quick: args.quick,
        seed: args.seed,
        is_share: args.share,
    };
    if args.share {
        let lines = (scenarios[0].run)(scenarios[0].name, &pools, effort)?;
        println!("{}", processes::to_text(&lines));
        return Ok(());
    }
    let mut run = document::begin(effort);
    measure(&mut run, &scenarios, &pools)?;
    if let Some(file) = &args.json {
        fs::write(file, run.to_json()).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    if args.write {
        run.write(Path::new(env!("CARGO_MANIFEST_DIR")))?;
    }
    Ok(())
}

/// Prints each table as soon as it is measured.
fn measure(run: &mut Run, scenarios: &[&Scenario], pools: &[Contender]) -> Result<(), String> {
    println!("{}, {}, load {}\n", run.date, run.machine, run.load[0]);
    for scenario in scenarios {
        let takes_part = |pool: &&Contender| match pool.kind {
            Kind::Database => scenario.name == "S13",
            Kind::Local => matches!(scenario.name, "S1" | "S3" | "S7"),
            _ => true,
        };
        let pools: Vec<Contender> = pools.iter().filter(takes_part).copied().collect();
        let lines = (scenario.run)(scenario.name, &pools, run.effort)?;
        println!("{}", table::tables(scenario, &lines));
        run.lines.extend(lines);
    }
    if scenarios.len() > 1 {
        println!("{}", summary::summary(&run.lines));
    }
    run.load[1] = machine::load();
    Ok(())
}

fn guard() -> Result<(), String> {
    instructions::available()?;
    for (name, limit) in instructions::GUARD {
        let pool = contender(name).ok_or_else(|| format!("no pool `{name}` to guard"))?;
        let counted = instructions::per_trip(&pool).map_err(|trouble| trouble.to_string())?;
        let trip = format!("a trip of {name} takes {counted:.0} instructions, at most {limit:.0}");
        if counted > limit {
            return Err(format!("{trip}: find what made it more expensive"));
        }
        println!("{trip}");
    }
    Ok(())
}

fn chosen_scenarios(names: &[String]) -> Result<Vec<&'static Scenario>, String> {
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let find = |name: &String| {
        let mut scenarios = ALL.iter();
        let found = scenarios.find(|scenario| scenario.name.eq_ignore_ascii_case(name));
        let all: Vec<&str> = ALL.iter().map(|scenario| scenario.name).collect();
        found.ok_or_else(|| format!("no scenario `{name}`; there are {}", all.join(", ")))
    };
    names.iter().map(find).collect()
}

/// Returns the pool of that name. Parts of names may choose several pools.
fn chosen_pools(names: &[String]) -> Result<Vec<Contender>, String> {
    if let [name] = names
        && let Some(one) = contender(name)
    {
        return Ok(vec![one]);
    }
    let wanted = |pool: &Contender| {
        names.is_empty() || names.iter().any(|name| pool.name.contains(name.as_str()))
    };
    let chosen: Vec<Contender> = contenders().into_iter().filter(wanted).collect();
    if chosen.is_empty() {
        return Err(format!("no pool has a name with {}", names.join(" or ")));
    }
    Ok(chosen)
}
