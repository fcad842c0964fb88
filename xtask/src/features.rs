//! `cargo xtask features`: checks each library alone, without features, with each of them and with
//! all. The gate does less, in its floors step.

use std::fs;
use std::io;

use crate::command::{Cargo, Outcome};
use crate::manifest;

pub(crate) fn run() -> Outcome {
    let manifests = read_manifests()
        .map_err(|error| format!("cannot read crates/ ({error}); rerun: cargo xtask features"))?;
    for manifest in &manifests {
        let Some(name) = manifest::package_name(manifest) else {
            continue;
        };
        check(name, &["--no-default-features"])?;
        for feature in manifest::features(manifest) {
            check(name, &["--no-default-features", "--features", feature])?;
        }
        check(name, &["--all-features"])?;
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
