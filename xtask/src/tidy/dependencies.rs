//! What the manifests say about dependencies.

use crate::manifest::{entries, package_name, versioned_dependencies};

use super::{File, Found};

pub(super) fn have_reasons(file: &File, _: &[File]) -> Vec<Found> {
    let entries = entries(&file.text).into_iter();
    let bare = entries.filter(|entry| {
        let one_line = entry.table == "workspace.dependencies" && !entry.comment.is_empty();
        entry.table.starts_with("workspace.dependencies") && !one_line
    });
    bare.map(|entry| (entry.line, format!("`{}`", entry.key)))
        .collect()
}

/// A dependency of tests that leads back to its crate goes by path and without a version: cargo
/// leaves it out of the published manifest, so that one of the two can be published first.
pub(super) fn are_shared(file: &File, tree: &[File]) -> Vec<Found> {
    let name = package_name(&file.text).unwrap_or_default();
    let mut found = Vec::new();
    for entry in entries(&file.text) {
        if !entry.table.contains("dependencies") {
            continue;
        }
        let of_tests = entry.table.ends_with("dev-dependencies");
        let one_line = entry.table.ends_with("dependencies");
        let (good, hint) = if of_tests && leads_to(entry.dependency(), name, tree) {
            let by_path = entry.value.contains("path = ") && !entry.value.contains("version");
            (
                by_path,
                ": it depends on this crate, so give its path alone",
            )
        } else {
            let shared =
                entry.value.contains("workspace = true") || entry.key.ends_with(".workspace");
            (shared, "")
        };
        if !(good && one_line) {
            found.push((entry.line, format!("`{}`{hint}", entry.key)));
        }
    }
    found
}

/// Returns whether the published manifests lead from one crate of ours to another.
fn leads_to(from: &str, to: &str, tree: &[File]) -> bool {
    let (mut seen, mut open) = (Vec::new(), vec![from.to_owned()]);
    while let Some(name) = open.pop() {
        if name == to {
            return true;
        }
        if seen.contains(&name) {
            continue;
        }
        let path = format!("crates/{name}/Cargo.toml");
        if let Some(file) = tree.iter().find(|file| file.path == path) {
            let next = versioned_dependencies(&file.text).into_iter();
            open.extend(next.map(str::to_owned));
        }
        seen.push(name);
    }
    false
}
