//! `cargo xtask features`: checks each library alone, without features and with all of them. With
//! `--each`, also with each feature alone.
//!
//! Alone, because in a build of the whole workspace a crate may use what another one has turned on.

use std::fs;
use std::io;

use crate::command::{Cargo, Outcome};
use crate::manifest;

pub(crate) fn run(args: &[&str]) -> Outcome {
    match args {
        [] => check_all(|_| Vec::new()),
        ["--each"] => check_all(manifest::features),
        _ => Err("usage: cargo xtask features [--each]".into()),
    }
}

/// `chosen` are the features that are checked alone.
fn check_all(chosen: impl Fn(&str) -> Vec<&str>) -> Outcome {
    let manifests = read_manifests()
        .map_err(|error| format!("cannot read crates/ ({error}); rerun: cargo xtask features"))?;
    for manifest in &manifests {
        let Some(name) = manifest::package_name(manifest) else {
            continue;
        };
        check(name, &["--no-default-features"])?;
        for feature in chosen(manifest) {
            check(name, &["--no-default-features", "--features", feature])?;
        }
        if !manifest::features(manifest).is_empty() {
            check(name, &["--all-features"])?;
        }
    }
    Ok(())
}

fn check(name: &str, features: &[&str]) -> Outcome {
    let clippy = Cargo::new("clippy -p").with(&[name]).with(features);
    clippy.with(&["--", "-D", "warnings"]).run()
}

/// The manifests of the crates that have a library, in order.
fn read_manifests() -> io::Result<Vec<String>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir("crates")? {
        let folder = entry?.path();
        if folder.join("src/lib.rs").exists() {
            folders.push(folder);
        }
    }
    folders.sort();
    let manifests = folders.iter().map(|folder| folder.join("Cargo.toml"));
    manifests.map(fs::read_to_string).collect()
}
