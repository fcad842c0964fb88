//! `cargo xtask features`: checks each library without features and with each feature alone.

use std::fs;
use std::io;

use crate::command::{Cargo, Outcome};
use crate::manifest;

pub(crate) fn run() -> Outcome {
    let manifests = read_manifests()
        .map_err(|error| format!("cannot read crates/ ({error}); rerun: cargo xtask features"))?;
    for manifest in manifests {
        let Some(name) = manifest::package_name(&manifest) else {
            continue;
        };
        check(name, None)?;
        for feature in manifest::features(&manifest) {
            check(name, Some(feature))?;
        }
    }
    Ok(())
}

fn check(name: &str, feature: Option<&str>) -> Outcome {
    let mut clippy = Cargo::new("clippy -p").with(&[name, "--no-default-features"]);
    if let Some(feature) = feature {
        clippy = clippy.with(&["--features", feature]);
    }
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
