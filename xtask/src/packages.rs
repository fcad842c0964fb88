//! The crates that go to the registry, as they are on disk.

use std::fs;
use std::io;

use crate::manifest;

/// A published crate.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest: String,
    pub(crate) has_library: bool,
}

/// All published crates, by name.
pub(crate) fn published() -> Result<Vec<Package>, String> {
    read().map_err(|error| format!("cannot read the manifests in crates/ ({error})"))
}

fn read() -> io::Result<Vec<Package>> {
    let mut packages = Vec::new();
    for entry in fs::read_dir("crates")? {
        let folder = entry?.path();
        // A folder without a manifest is no crate.
        let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        if let Some(name) = manifest::package_name(&text)
            && manifest::is_published(&text)
        {
            packages.push(Package {
                name: name.to_owned(),
                has_library: folder.join("src/lib.rs").exists(),
                manifest: text,
            });
        }
    }
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(packages)
}
