//! `cargo xtask release --dry-run`: everything that must hold before the crates are published.
//! Nothing here uploads anything.

mod order;
#[cfg(test)]
mod tests;

use std::fs;
use std::process::Command;

use crate::command::{Cargo, Outcome};
use crate::manifest::{Entry, entries};
use crate::packages;
use crate::{api, features, tidy};

const BY_HAND: &str = "\
this command uploads nothing. When `cargo xtask release --dry-run` has passed and CI is green:
  git tag cenote-VERSION && git push --tags
  cargo publish --workspace    # in the order that the dry run prints; private members are left out";

pub(crate) fn run(args: &[&str]) -> Outcome {
    match args {
        ["--dry-run"] => dry_run(),
        [] => Err(BY_HAND.to_owned()),
        _ => Err("usage: cargo xtask release --dry-run".into()),
    }
}

/// The cheap part, for the gate: every package can be made. It builds none of them. Without the
/// network, because cargo would ask the registry for each package, and that takes a minute.
pub(crate) fn pack() -> Outcome {
    Cargo::new("package --workspace --no-verify --allow-dirty --quiet --offline").run()
}

fn dry_run() -> Outcome {
    is_clean()?;
    let root = fs::read_to_string("Cargo.toml").map_err(|error| format!("Cargo.toml: {error}"))?;
    let version = one_version(&root)?;
    let changelog =
        fs::read_to_string("CHANGELOG.md").map_err(|error| format!("CHANGELOG.md: {error}"))?;
    is_described(&changelog, &version)?;
    tidy::run()?;
    api::run(&[])?;
    features::run()?;
    let packages = order::by_need(packages::published()?)?;
    // With all features, because a crate of optional parts is empty without them. In one folder, so
    // that each dependency is built once.
    Cargo::new("package --workspace --all-features --target-dir target").run()?;

    println!("\n{version} would be uploaded in this order:");
    for (index, package) in packages.iter().enumerate() {
        let file = format!("target/package/{}-{version}.crate", package.name);
        let bytes = fs::metadata(&file).map_or(0, |it| it.len());
        println!(
            "{:>4}  {:<18}{:>5} kB",
            index + 1,
            package.name,
            bytes / 1000
        );
    }
    Ok(())
}

fn is_clean() -> Outcome {
    let status = Command::new("git").args(["status", "--porcelain"]).output();
    let status = status.map_err(|error| format!("cannot run git ({error})"))?;
    let changed = String::from_utf8_lossy(&status.stdout).lines().count();
    match changed {
        0 => Ok(()),
        _ => Err(format!(
            "{changed} files are not as committed: commit or remove them"
        )),
    }
}

/// The version of the workspace, which all crates of ours have and ask each other for.
fn one_version(root: &str) -> Result<String, String> {
    let entries = entries(root);
    let is_version =
        |entry: &&Entry<'_>| entry.table == "workspace.package" && entry.key == "version";
    let version = entries
        .iter()
        .find(is_version)
        .map(|entry| entry.value.trim_matches('"'));
    let version = version.ok_or("no version in [workspace.package] of Cargo.toml")?;
    let asked = format!("version = \"{version}\"");
    let ours = entries
        .iter()
        .filter(|entry| entry.table == "workspace.dependencies" && entry.value.contains("path = "));
    let mut other =
        ours.filter(|entry| entry.value.contains("version") && !entry.value.contains(&asked));
    match other.next() {
        None => Ok(version.to_owned()),
        Some(entry) => Err(format!(
            "Cargo.toml:{}: `{}` is asked for in another version than {version}",
            entry.line, entry.key
        )),
    }
}

fn is_described(changelog: &str, version: &str) -> Outcome {
    let heading = format!("## {version}");
    let mut headings = changelog.lines().filter(|line| line.starts_with("## "));
    match headings.next() {
        Some(line) if line.starts_with(&heading) && !line.contains("unreleased") => Ok(()),
        first => Err(format!(
            "CHANGELOG.md begins with `{}`, not with `{heading}`",
            first.unwrap_or_default()
        )),
    }
}
