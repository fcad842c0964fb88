//! What the manifests say about dependencies.

use crate::manifest::entries;

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

pub(super) fn are_shared(file: &File, _: &[File]) -> Vec<Found> {
    let entries = entries(&file.text).into_iter();
    let own = entries.filter(|entry| {
        let shared = entry.value.contains("workspace = true") || entry.key.ends_with(".workspace");
        let one_line = entry.table.ends_with("dependencies") && shared;
        entry.table.contains("dependencies") && !one_line
    });
    own.map(|entry| (entry.line, format!("`{}`", entry.key)))
        .collect()
}
