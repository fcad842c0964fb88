//! `cargo xtask bench`: measures cenote beside its peers, always optimised.
//! The guard of the gate counts the instructions of cenote alone.

use std::process::{Command, Stdio};

use crate::command::{Cargo, Outcome};
use crate::servers::Servers;

/// The arguments are those of the program; `--help` lists them.
pub(crate) fn run(args: &[&str]) -> Outcome {
    if args.contains(&"--guard") {
        return guard();
    }
    if args.contains(&"--fleet") {
        // Without the peers of the other benchmarks it is built sooner.
        let line = "bench --quiet -p cenote-benchmarks --no-default-features --bench fleet --";
        let rest = args.iter().copied().filter(|arg| *arg != "--fleet");
        return Cargo::new(line).with(&rest.collect::<Vec<_>>()).run();
    }
    if plays("S7", args) {
        have_valgrind()?;
    }
    // The program starts others of its package.
    Cargo::new("build --quiet --profile measured -p cenote-benchmarks").run()?;
    let bench = Cargo::new("run --quiet --profile measured -p cenote-benchmarks --bin bench --");
    let bench = bench.with(args);
    if plays("S13", args) {
        let postgres = Servers::find_postgres()?;
        return bench.passing(postgres.variables()).run();
    }
    bench.run()
}

/// All scenarios are played if none is named.
fn plays(scenario: &str, args: &[&str]) -> bool {
    let mut named = args.iter().filter(|arg| arg.starts_with(['s', 'S']));
    let is_named = |arg: &&str| arg.eq_ignore_ascii_case(scenario);
    named.clone().next().is_none() || named.any(is_named)
}

/// Counts instructions, which are the same on a busy machine. Without the peers it is built in
/// seconds.
pub(crate) fn guard() -> Outcome {
    have_valgrind()?;
    Cargo::new(
        "run --quiet --profile measured -p cenote-benchmarks --no-default-features --bin bench -- --guard",
    )
    .run()
}

/// Installs valgrind if it is missing and this is root.
fn have_valgrind() -> Outcome {
    if works("valgrind", &["--version"]) {
        return Ok(());
    }
    let install = ["install", "-y", "--no-install-recommends", "valgrind"];
    if is_root() {
        println!("valgrind is not installed; installing the package `valgrind`");
        if works("apt-get", &["update"]) && works("apt-get", &install) {
            return Ok(());
        }
    }
    Err("instructions are counted by valgrind, and it is not installed: install the package `valgrind`".to_owned())
}

fn works(program: &str, args: &[&str]) -> bool {
    let status = Command::new(program)
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}
