//! `cargo xtask`: the commands of this workspace. They use the standard library only, so that they
//! are built in seconds.

mod api;
mod bench;
mod beside;
mod command;
mod features;
mod floors;
mod fuzz;
mod gate;
mod manifest;
mod model;
mod mutants;
mod packages;
mod release;
mod screenshots;
mod servers;
mod sim;
mod soak;
mod test;
mod tidy;

use std::env;
use std::path::Path;
use std::process::ExitCode;

const COMMANDS: &str = "\
commands:
  cargo xtask test [FILTER...]  run all tests, doc tests and examples; with a filter, only the
                                tests that it names
  cargo xtask gate              all checks before a commit: fmt, tidy, build (with clippy's lints),
                                package, test, guard, model, floors, api (with all pages)
  cargo xtask api [--write]     compare the public API with its listings in api/, or write them
  cargo xtask release --dry-run
                                all checks before the crates are published; each is built from its
                                package
  cargo xtask features          check each library alone, without features, with each and with all
  cargo xtask model [--long]    play the core's threads and tasks in many orders; with --long, in
                                many more, and under Miri
  cargo xtask sim [--local] [--seeds N] [--from K] | --seed S
                                play seeds of the whole-pool simulation; one alone prints its story
  cargo xtask soak [--minutes N]
                                put real pools under mixed load and look for leaks
  cargo xtask fuzz [--minutes N | --cases N]
                                make up configurations and ledger histories
  cargo xtask mutants [--shard K/N] [GLOB...]
                                change the core, or these files, in one place after another, and
                                show the changes that no test notices; a shard is a part of them
  cargo xtask bench [SCENARIO...] [--quick] [--json FILE] [--write] | --guard
                                measure cenote beside its peers; the guard only counts its
                                instructions
  cargo xtask floors [--write]  check the libraries with the oldest dependencies, all together and
                                each alone without features; with --write, find them again
  cargo xtask screenshots       take pictures of the live page for its README
  cargo xtask tidy              look for broken absences and stale claims";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Err(error) = env::set_current_dir(root()) {
        eprintln!("xtask: cannot enter {}: {error}", root().display());
        return ExitCode::FAILURE;
    }

    let outcome = match args.as_slice() {
        [] => {
            println!("{COMMANDS}");
            Ok(())
        }
        ["test", filters @ ..] => test::run(filters),
        ["sim", args @ ..] => sim::run(args),
        ["soak", args @ ..] => soak::run(args),
        ["fuzz", args @ ..] => fuzz::run(args),
        ["bench", args @ ..] => bench::run(args),
        ["floors", args @ ..] => floors::run(args),
        ["api", args @ ..] => api::run(args),
        ["features"] => features::run(),
        ["gate"] => gate::run(),
        ["model"] => model::run(),
        ["model", "--long"] => model::run_long(),
        ["mutants", args @ ..] => mutants::run(args),
        ["release", args @ ..] => release::run(args),
        ["screenshots"] => screenshots::run(),
        ["tidy"] => tidy::run(),
        unknown => {
            eprintln!("xtask: unknown command `{}`\n{COMMANDS}", unknown.join(" "));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace: commands are started here, wherever `cargo xtask` was typed.
fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}
