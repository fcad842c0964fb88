//! `cargo xtask bench`: measures cenote beside its peers, always optimised.
//! The guard of the gate counts the instructions of cenote alone.

use std::process::{Command, Stdio};

use crate::command::{Cargo, Outcome};

/// The arguments are those of the program; `--help` lists them.
pub(crate) fn run(args: &[&str]) -> Outcome {
    if args.contains(&"--guard") {
        return guard();
    }
    let mut named = args
        .iter()
        .filter(|arg| arg.starts_with(['s', 'S']))
        .peekable();
    if named.peek().is_none() || named.any(|arg| arg.eq_ignore_ascii_case("S7")) {
        have_valgrind()?;
    }
    // The program starts others of its package.
    Cargo::new("build --quiet --profile measured -p cenote-benchmarks").run()?;
    Cargo::new("run --quiet --profile measured -p cenote-benchmarks --bin bench --")
        .with(args)
        .run()
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
