//! The rules of tidy: where to look, what for, and why.
//! A new rule is one entry in [`RULES`] and one case in the tests.

use super::paths::{
    is_core, is_core_root, is_crate_manifest, is_crate_source, is_example, is_readme_of_crate,
    is_rust, is_test, is_written,
};
use super::{File, Found, core, dependencies, documents, folders, prose, registry, walks, words};

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
    /// None of these words outside comments and strings.
    CodeLacksWords(&'static [&'static str]),
    /// None of these anywhere.
    Lacks(&'static [&'static str]),
    /// Each of these somewhere.
    Has(&'static [&'static str]),
    /// No more lines than this.
    AtMost(usize),
    /// A question about the file and the tree around it.
    Asks(fn(&File, &[File]) -> Vec<Found>),
}

/// Needles that this file itself must not contain are written in two pieces.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "one room for tokio",
        at: |path| is_core(path) && path != "crates/cenote/src/rt/on_tokio.rs",
        look: Look::CodeLacksWords(&["tokio"]),
        why: "in core only rt/on_tokio.rs names the runtime",
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
            ".wake()",
            "wake_by_ref",
            "thread_local",
            "OnceLock",
            "LazyLock",
            "Home::",
            ".is_gone()",
        ]),
        why: "the ledger decides and does nothing else, so that a seed replays it",
    },
    Rule {
        name: "small core",
        at: is_core_root,
        look: Look::Asks(core::is_small_enough),
        why: "a mechanism pays for its lines, or it goes",
    },
    Rule {
        name: "one name, one file",
        at: is_core,
        look: Look::Asks(core::has_own_name),
        why: "a file is found by its name alone; only `mod.rs` and `tests.rs` come twice",
    },
    Rule {
        name: "no cycles",
        at: is_core_root,
        look: Look::Asks(folders::have_no_cycle),
        why: "a folder is understood after the folders that it uses",
    },
    Rule {
        name: "doors stay above",
        at: folders::is_below_the_doors,
        look: Look::Asks(folders::uses_no_door),
        why: "ledger, tray, time and rt know nothing of the code that serves users with them",
    },
    Rule {
        name: "one direction",
        at: core::is_entry,
        look: Look::Asks(core::calls_no_other_entry),
        why: "a decision of the ledger is read downwards; shared steps are in a file below",
    },
    Rule {
        name: "named files",
        at: is_core_root,
        look: Look::Asks(core::named_files_exist),
        why: "a rule about a file that has moved guards nothing",
    },
    Rule {
        name: "abandoned words",
        at: is_core,
        look: Look::Asks(words::are_current),
        why: "one word per thing: the glossary of ARCHITECTURE.md has the current one",
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
        look: Look::Asks(documents::first_line_speaks),
        why: "the first line of a file says what it is, that of an example how to run it",
    },
    Rule {
        name: "short files",
        at: is_rust,
        look: Look::AtMost(400),
        why: "a file over that is two files",
    },
    Rule {
        name: "plain subjects",
        at: is_written,
        look: Look::Asks(words::are_plain),
        why: "name the waiter, lease, resource, pool or caller; write `Returns`",
    },
    Rule {
        name: "100 columns",
        at: is_written,
        look: Look::Asks(prose::fits_the_page),
        why: "comments and documents are as wide as the code",
    },
    Rule {
        name: "code first",
        at: |path| path == "README.md",
        look: Look::Asks(documents::code_by_line_15),
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
        at: |path| path == "ARCHITECTURE.md",
        look: Look::AtMost(120),
        why: "one page is read, two are not",
    },
    Rule {
        name: "short README",
        at: |path| path == "README.md",
        look: Look::AtMost(170),
        why: "a visitor scrolls through it once",
    },
    Rule {
        name: "true addresses",
        at: is_readme_of_crate,
        look: Look::Asks(documents::addresses_lead_to_files),
        why: "a README is read in the registry, too: it names files by their address",
    },
    Rule {
        name: "true map",
        at: |path| path == "ARCHITECTURE.md",
        look: Look::Asks(documents::paths_exist),
        why: "the map names only rooms that are there",
    },
    Rule {
        name: "true walks",
        at: |path| path == "ARCHITECTURE.md",
        look: Look::Asks(walks::are_true),
        why: "each step of a walk names a function that is there",
    },
    Rule {
        name: "twenty words",
        at: |path| path == "ARCHITECTURE.md",
        look: Look::Asks(walks::words_are_few),
        why: "a reader learns about twenty words of ours and no more",
    },
    Rule {
        name: "reasons for dependencies",
        at: |path| path == "Cargo.toml",
        look: Look::Asks(dependencies::have_reasons),
        why: "in the root each dependency is one line that ends with `# what it is for`",
    },
    Rule {
        name: "shared dependencies",
        at: |path| path.ends_with("/Cargo.toml"),
        look: Look::Asks(dependencies::are_shared),
        why: "a member writes one line with `workspace = true`: version and reason are in the root",
    },
    Rule {
        name: "ready for the registry",
        at: |path| path.ends_with("/Cargo.toml"),
        look: Look::Asks(registry::is_ready),
        why: "a crate is found, judged and trusted by its page there",
    },
    Rule {
        name: "lean packages",
        at: is_crate_manifest,
        look: Look::Asks(registry::is_lean),
        why: "a package has what its users need: tests and measurements stay in the repository",
    },
    Rule {
        name: "index of examples",
        at: is_example,
        look: Look::Asks(documents::is_indexed),
        why: "a reader looks for an example in that index",
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
