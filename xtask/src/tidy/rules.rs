//! The rules of tidy: where to look, what for, and why. A new rule is one entry in [`RULES`] and one case in the tests.

use crate::manifest::entries;

use super::{File, Found};

pub(super) struct Rule {
    pub(super) name: &'static str,
    /// Which files it reads, by path from the root.
    pub(super) at: fn(&str) -> bool,
    pub(super) look: Look,
    pub(super) why: &'static str,
}

/// What must hold in each file the rule reads.
pub(super) enum Look {
    /// None of these outside comments.
    CodeLacks(&'static [&'static str]),
    /// None of these anywhere.
    Lacks(&'static [&'static str]),
    /// Each of these somewhere.
    Has(&'static [&'static str]),
    /// No more lines than this.
    AtMost(usize),
    /// Anything else: a question about the file and the tree around it.
    Asks(fn(&File, &[File]) -> Vec<Found>),
}

/// Needles that this file itself must not contain are written in two pieces.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "one room for tokio",
        at: |path| is_core(path) && path != "crates/cenote/src/rt.rs",
        look: Look::CodeLacks(&["tokio::", "use tokio"]),
        why: "in core only rt.rs names the runtime",
    },
    Rule {
        name: "pure ledger",
        at: |path| is_core(path) && path.contains("/ledger") && !is_test(path),
        look: Look::CodeLacks(&[
            "async ",
            ".await",
            "Instant::now",
            "tokio",
            "catch_unwind",
            "Observer",
            "println",
        ]),
        why: "the ledger decides and does nothing else, so that a seed replays it",
    },
    Rule {
        name: "safe code",
        at: is_rust,
        look: Look::CodeLacks(&[concat!("uns", "afe "), concat!("uns", "afe(")]),
        why: "the workspace forbids it, macros and attributes included",
    },
    Rule {
        name: "nothing left over",
        at: is_rust,
        look: Look::Lacks(&[
            concat!("to", "do!("),
            concat!("unimpl", "emented!("),
            concat!("#[ig", "nore"),
            concat!("TO", "DO"),
            concat!("FIX", "ME"),
            concat!("db", "g!("),
        ]),
        why: "finish it, delete it, or open an issue",
    },
    Rule {
        name: "no bare unwrap",
        at: |path| is_crate_source(path) && !is_test(path),
        look: Look::CodeLacks(&[".unwrap()"]),
        why: "return an error, or `expect` the rule that makes it safe",
    },
    Rule {
        name: "first line",
        at: is_rust,
        look: Look::Asks(first_line_speaks),
        why: "the first line of a file says what it is, that of an example how to run it",
    },
    Rule {
        name: "short files",
        at: is_rust,
        look: Look::AtMost(400),
        why: "a file over that is two files",
    },
    Rule {
        name: "code first",
        at: |path| path == "README.md",
        look: Look::Asks(code_by_line_15),
        why: "a reader sees code before they scroll",
    },
    Rule {
        name: "two commands",
        at: |path| path == "README.md",
        look: Look::Has(&["cargo run --release", "cargo xtask test"]),
        why: "the README names how to run and how to test",
    },
    Rule {
        name: "short documents",
        at: |path| matches!(path, "README.md" | "ARCHITECTURE.md"),
        look: Look::AtMost(120),
        why: "one page is read, two are not",
    },
    Rule {
        name: "true map",
        at: |path| path == "ARCHITECTURE.md",
        look: Look::Asks(paths_exist),
        why: "the map names only rooms that are there",
    },
    Rule {
        name: "reasons for dependencies",
        at: |path| path == "Cargo.toml",
        look: Look::Asks(dependencies_have_reasons),
        why: "in the root each dependency is one line that ends with `# what it is for`",
    },
    Rule {
        name: "shared dependencies",
        at: |path| path.ends_with("/Cargo.toml"),
        look: Look::Asks(dependencies_are_shared),
        why: "a member writes one line with `workspace = true`, so that version and reason stand once, in the root",
    },
    Rule {
        name: "index of examples",
        at: is_example,
        look: Look::Asks(is_indexed),
        why: "who looks for an example looks in that index",
    },
    Rule {
        name: "no workplace",
        at: |_| true,
        look: Look::Lacks(&[
            concat!("/wo", "rk/"),
            concat!("../sh", "ared"),
            concat!("DEVEL", "OPERS.md"),
            concat!("SEE", "DS.md"),
            concat!("field-", "rust"),
        ]),
        why: "a reader of the repository has no such place",
    },
];

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn is_core(path: &str) -> bool {
    is_rust(path) && path.starts_with("crates/cenote/src/")
}

fn is_crate_source(path: &str) -> bool {
    is_rust(path) && path.starts_with("crates/") && path.split('/').nth(2) == Some("src")
}

fn is_test(path: &str) -> bool {
    let folders = ["/tests/", "/ledger/handover/"];
    path.ends_with("/tests.rs") || folders.iter().any(|folder| path.contains(folder))
}

/// Only those directly in the folder: what they share may live below it.
fn is_example(path: &str) -> bool {
    let file = path.strip_prefix("examples/");
    is_rust(path) && file.is_some_and(|file| !file.contains('/'))
}

fn first_line_speaks(file: &File, _: &[File]) -> Vec<Found> {
    let first = file.text.lines().next().unwrap_or_default();
    let speaks = if is_example(&file.path) {
        first.starts_with("//!") && first.contains("cargo run")
    } else {
        first.starts_with("//!") || first.starts_with("#![")
    };
    found_unless(speaks, 1, &format!("starts with `{first}`"))
}

fn code_by_line_15(file: &File, _: &[File]) -> Vec<Found> {
    let mut top = file.text.lines().take(15);
    let shown = top.any(|line| line.starts_with("```rust"));
    found_unless(shown, 15, "no Rust by here")
}

fn paths_exist(file: &File, tree: &[File]) -> Vec<Found> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        // Between backticks stands every second piece.
        for quoted in line.split('`').skip(1).step_by(2) {
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

fn dependencies_have_reasons(file: &File, _: &[File]) -> Vec<Found> {
    let entries = entries(&file.text).into_iter();
    let bare = entries.filter(|entry| {
        let one_line = entry.table == "workspace.dependencies" && !entry.comment.is_empty();
        entry.table.starts_with("workspace.dependencies") && !one_line
    });
    bare.map(|entry| (entry.line, format!("`{}`", entry.key)))
        .collect()
}

fn dependencies_are_shared(file: &File, _: &[File]) -> Vec<Found> {
    let entries = entries(&file.text).into_iter();
    let own = entries.filter(|entry| {
        let shared = entry.value.contains("workspace = true") || entry.key.ends_with(".workspace");
        let one_line = entry.table.ends_with("dependencies") && shared;
        entry.table.contains("dependencies") && !one_line
    });
    own.map(|entry| (entry.line, format!("`{}`", entry.key)))
        .collect()
}

fn is_indexed(file: &File, tree: &[File]) -> Vec<Found> {
    let name = file
        .path
        .trim_start_matches("examples/")
        .trim_end_matches(".rs");
    let mentions = [
        format!("{name}.rs"),
        format!("`{name}`"),
        format!("--example {name}"),
    ];
    let index = tree.iter().find(|file| file.path == "examples/README.md");
    let listed = index.is_some_and(|index| mentions.iter().any(|it| index.text.contains(it)));
    found_unless(listed, 1, "not in examples/README.md")
}

fn found_unless(good: bool, line: usize, seen: &str) -> Vec<Found> {
    if good {
        Vec::new()
    } else {
        vec![(line, seen.to_owned())]
    }
}
