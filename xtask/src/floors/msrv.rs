//! The oldest Rust: the published crates are built by the version that they promise.

use std::collections::BTreeSet;
use std::process::Command;

use crate::command::Outcome;

use super::workspace::{Workspace, is_newer};

/// Builds with each promised Rust that is installed. For the others, clippy has looked for newer
/// parts of the standard library in an earlier step, and nothing more is known.
pub(super) fn check(workspace: &Workspace) -> Outcome {
    let installed = installed();
    let mut missing = Vec::new();
    for rust in promised(workspace) {
        match installed.iter().find(|it| is_toolchain(it, &rust)) {
            Some(toolchain) => build(workspace, &rust, toolchain)?,
            None => missing.push(rust),
        }
    }
    if !missing.is_empty() {
        println!(
            "Rust {} is not installed: only clippy::incompatible_msrv has looked",
            missing.join(" and ")
        );
    }
    Ok(())
}

/// Builds the crates that promise this Rust or an older one, with the features that allow it.
fn build(workspace: &Workspace, rust: &str, toolchain: &str) -> Outcome {
    let mut check = super::cargo(&format!("+{toolchain} check"), "");
    for member in &workspace.members {
        let promise = member.rust_version();
        if promise.is_none_or(|promise| is_newer(&promise, rust)) {
            continue;
        }
        check = check.with(&["-p", &member.name]);
        for feature in member.features_for(rust, workspace) {
            check = check.with(&["--features", &format!("{}/{feature}", member.name)]);
        }
    }
    check.run()
}

fn promised(workspace: &Workspace) -> BTreeSet<String> {
    let members = workspace.members.iter();
    members.filter_map(|member| member.rust_version()).collect()
}

/// The names of rustup's toolchains; none where there is no rustup.
fn installed() -> Vec<String> {
    let listing = Command::new("rustup").args(["toolchain", "list"]).output();
    let listing = listing.map(|listing| listing.stdout).unwrap_or_default();
    let listing = String::from_utf8_lossy(&listing);
    let names = listing.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

/// `1.85-x86_64-unknown-linux-gnu` and `1.85.1-…` are Rust 1.85.
pub(super) fn is_toolchain(name: &str, rust: &str) -> bool {
    let rest = name.strip_prefix(rust);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
}
