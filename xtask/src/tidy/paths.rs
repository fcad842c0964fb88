//! Which files a rule reads, by their paths from the root.

/// The source of the core crate.
pub(super) const CORE: &str = "crates/cenote/src/";

/// Rules about the core as a whole read it from its first file.
pub(super) fn is_core_root(path: &str) -> bool {
    path == "crates/cenote/src/lib.rs"
}

pub(super) fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

pub(super) fn is_core(path: &str) -> bool {
    is_rust(path) && path.starts_with(CORE)
}

pub(super) fn is_crate_source(path: &str) -> bool {
    is_rust(path) && path.starts_with("crates/") && path.split('/').nth(2) == Some("src")
}

/// A whole file or folder of tests. The core's exhaustive model of a hand-over is one too.
pub(super) fn is_test(path: &str) -> bool {
    let folders = ["/tests/", "/ledger/handover/"];
    path.ends_with("/tests.rs") || folders.iter().any(|folder| path.contains(folder))
}

/// Only the files directly in the folder: code that they share may live below it.
pub(super) fn is_example(path: &str) -> bool {
    let file = path.strip_prefix("examples/");
    is_rust(path) && file.is_some_and(|file| !file.contains('/'))
}

pub(super) fn is_crate_manifest(path: &str) -> bool {
    path.starts_with("crates/") && path.ends_with("/Cargo.toml")
}

/// That of the root is the README of the core.
pub(super) fn is_readme_of_crate(path: &str) -> bool {
    path == "README.md" || path.starts_with("crates/") && path.ends_with("/README.md")
}

/// Code and documents that people write. The inputs of compile-fail tests and the links to the
/// changelog are not.
pub(super) fn is_written(path: &str) -> bool {
    let is_link = path.ends_with("/CHANGELOG.md");
    (is_rust(path) || path.ends_with(".md")) && !path.contains("/tests/ui/") && !is_link
}
