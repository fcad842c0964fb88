//! What a crate needs before it goes to the registry.

use crate::manifest::{entries, is_published, package_name, package_value};

use super::{File, Found, found_unless};

/// The crates of `crates/` that are not for others.
const PRIVATE: &[&str] = &["cenote-fleet-servers", "cenote-servers"];

/// What the page of a crate in the registry shows, and what users can rely on.
const KEYS: &[&str] = &[
    "description",
    "version",
    "edition",
    "license",
    "repository",
    "rust-version",
    "keywords",
    "categories",
];

/// The registry refuses more.
const MOST_KEYWORDS: usize = 5;

/// In the folder of each crate as a link to the one in the root. Cargo packs the linked file.
const COPIES: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"];

/// How docs.rs builds the pages: with all items, each with the feature that it needs.
const DOCS: [(&str, &str); 2] = [
    ("all-features", "true"),
    ("rustdoc-args", r#"["--cfg", "docsrs"]"#),
];
const SHOWS_FEATURES: &str = "#![cfg_attr(docsrs, feature(doc_cfg))]";

/// What may be in a package beside the files that every crate has.
const PACKED: &[&str] = &["src", "assets"];

pub(super) fn is_ready(file: &File, tree: &[File]) -> Vec<Found> {
    let Some(name) = package_name(&file.text) else {
        return Vec::new();
    };
    let is_ours = file.path.starts_with("crates/") && !PRIVATE.contains(&name);
    if is_ours != is_published(&file.text) {
        let seen = if is_ours {
            "not published"
        } else {
            "no `publish = false`"
        };
        return vec![(1, seen.to_owned())];
    }
    if !is_ours {
        return Vec::new();
    }
    let mut found = lacks_keys(&file.text);
    let folder = file.path.trim_end_matches("Cargo.toml");
    found.extend(lacks_files(folder, tree));
    let library = format!("{folder}src/lib.rs");
    if let Some(library) = tree.iter().find(|file| file.path == library) {
        found.extend(lacks_docs(&file.text, &library.text));
    }
    found
}

fn lacks_keys(text: &str) -> Vec<Found> {
    let missing = KEYS.iter().filter(|key| package_value(text, key).is_none());
    let mut found: Vec<Found> = missing.map(|key| (1, format!("no `{key}`"))).collect();
    let keywords = package_value(text, "keywords").unwrap_or_default();
    let count = keywords.split(',').count();
    let seen = format!("{count} keywords, at most {MOST_KEYWORDS}");
    found.extend(found_unless(count <= MOST_KEYWORDS, 1, &seen));
    found
}

fn lacks_files(folder: &str, tree: &[File]) -> Vec<Found> {
    let text_of = |path: &str| {
        let file = tree.iter().find(|file| file.path == path);
        file.map(|file| &file.text)
    };
    let mut found = Vec::new();
    if text_of(&format!("{folder}README.md")).is_none() {
        found.push((1, "no README.md".to_owned()));
    }
    for name in COPIES {
        let copy = text_of(&format!("{folder}{name}"));
        if copy.is_none() || copy != text_of(name) {
            let mend = format!("`ln -s ../../{name} {folder}`");
            found.push((1, format!("no link to {name}, made by {mend}")));
        }
    }
    found
}

fn lacks_docs(manifest: &str, library: &str) -> Vec<Found> {
    let entries = entries(manifest);
    let missing = DOCS.iter().filter(|(key, value)| {
        !entries.iter().any(|entry| {
            entry.table == "package.metadata.docs.rs" && entry.key == *key && entry.value == *value
        })
    });
    let found = missing.map(|(key, value)| {
        let line = format!("no `{key} = {value}` in [package.metadata.docs.rs]");
        (1, line)
    });
    let mut found: Vec<Found> = found.collect();
    let shows = library.lines().any(|line| line == SHOWS_FEATURES);
    let seen = format!("no `{SHOWS_FEATURES}` in src/lib.rs");
    found.extend(found_unless(shows, 1, &seen));
    found
}

/// Looks for folders that the manifest neither packs for a reason nor excludes.
pub(super) fn is_lean(file: &File, tree: &[File]) -> Vec<Found> {
    if !is_published(&file.text) {
        return Vec::new();
    }
    let folder = file.path.trim_end_matches("Cargo.toml");
    let excluded = package_value(&file.text, "exclude").unwrap_or_default();
    let inside = tree
        .iter()
        .filter_map(|file| file.path.strip_prefix(folder));
    let mut folders: Vec<&str> = inside
        .filter_map(|path| path.split_once('/'))
        .map(|it| it.0)
        .collect();
    folders.sort_unstable();
    folders.dedup();
    folders.retain(|it| !PACKED.contains(it) && !excluded.contains(&format!("\"{it}/\"")));
    let found = folders.into_iter();
    found
        .map(|it| (1, format!("`{it}/` is not excluded")))
        .collect()
}
