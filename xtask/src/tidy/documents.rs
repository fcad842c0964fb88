//! What the documents claim, and how they begin. The walks of ARCHITECTURE.md are in `walks`.

use super::paths::is_example;
use super::walks::quoted;
use super::{File, Found, found_unless};

/// Where the files of the main branch are: as they are, for pictures, and to be read.
const IN_REPOSITORY: [&str; 2] = [
    "https://raw.githubusercontent.com/cenote-rs/cenote/main/",
    "https://github.com/cenote-rs/cenote/blob/main/",
];

pub(super) fn first_line_speaks(file: &File, _: &[File]) -> Vec<Found> {
    let first = file.text.lines().next().unwrap_or_default();
    let speaks = if is_example(&file.path) {
        first.starts_with("//!") && first.contains("cargo run")
    } else {
        first.starts_with("//!") || first.starts_with("#![")
    };
    found_unless(speaks, 1, &format!("starts with `{first}`"))
}

pub(super) fn code_by_line_15(file: &File, _: &[File]) -> Vec<Found> {
    let mut top = file.text.lines().take(15);
    let shown = top.any(|line| line.starts_with("```rust"));
    found_unless(shown, 15, "no Rust by here")
}

pub(super) fn is_indexed(file: &File, tree: &[File]) -> Vec<Found> {
    let name = file.path.trim_start_matches("examples/");
    let name = name.trim_end_matches(".rs");
    let mentions = [
        format!("{name}.rs"),
        format!("`{name}`"),
        format!("--example {name}"),
    ];
    let index = tree.iter().find(|file| file.path == "examples/README.md");
    let listed = index.is_some_and(|index| mentions.iter().any(|it| index.text.contains(it)));
    found_unless(listed, 1, "not in examples/README.md")
}

/// The registry and docs.rs show the README of a crate and have no files beside it, so pictures and
/// links give the address of a file in the repository. That file must be there.
pub(super) fn addresses_lead_to_files(file: &File, tree: &[File]) -> Vec<Found> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if line.starts_with("![") && !line.contains(IN_REPOSITORY[0]) {
            found.push((index + 1, "a picture by its path".to_owned()));
        }
        for root in IN_REPOSITORY {
            let rests = line.split(root).skip(1);
            let paths = rests.map(|rest| rest.split([')', ' ', '#']).next().unwrap_or_default());
            let lost = paths.filter(|path| !tree.iter().any(|file| file.path == *path));
            found.extend(lost.map(|path| (index + 1, format!("`{path}` is not in the tree"))));
        }
    }
    found
}

pub(super) fn paths_exist(file: &File, tree: &[File]) -> Vec<Found> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for quoted in quoted(line) {
            if looks_like_path(quoted) && !tree.iter().any(|file| leads_to(quoted, file)) {
                found.push((index + 1, format!("`{quoted}` is not in the tree")));
            }
        }
    }
    found
}

/// A path may be given from the root or from any folder: `ledger/slot.rs` will do.
fn leads_to(path: &str, file: &File) -> bool {
    let (path, whole) = (format!("/{path}"), format!("/{}", file.path));
    whole.ends_with(&path) || path.ends_with('/') && whole.contains(&path)
}

fn looks_like_path(text: &str) -> bool {
    let ending = ["/", ".rs", ".md"].iter().any(|end| text.ends_with(end));
    ending && text.contains('/') && !text.contains(' ')
}
