//! Texts and trees that several cases share, or that are too long to stand in one.

use crate::tidy::core::MOST_LINES;

use super::cases::Tree;

/// A picture and a file by their addresses, and a picture in a document that stays here.
pub(super) const ADDRESSES: Tree = &[
    (
        "README.md",
        "![a](https://raw.githubusercontent.com/cenote-rs/cenote/main/chart.svg)\n\
         [guide]: https://github.com/cenote-rs/cenote/blob/main/guide/09.md",
    ),
    ("chart.svg", ""),
    ("guide/09.md", ""),
    ("benchmarks/README.md", "![b](chart.svg)"),
];

/// The manifest of a program that can go to the registry.
pub(super) const READY: &str = "[package]
name = \"cenote-a\"
description = \"a\"
version.workspace = true
edition.workspace = true
license.workspace = true
repository.workspace = true
rust-version = \"1.85\"
keywords = [\"pool\", \"async\"]
categories = [\"asynchronous\"]
";

/// That program with all of its files, beside a member that stays private.
pub(super) const PUBLISHED: Tree = &[
    (
        "benchmarks/Cargo.toml",
        "[package]\nname = \"b\"\npublish = false",
    ),
    ("crates/cenote-a/Cargo.toml", READY),
    ("crates/cenote-a/src/main.rs", ""),
    ("crates/cenote-a/README.md", ""),
    ("crates/cenote-a/LICENSE-MIT", "as is"),
    ("crates/cenote-a/LICENSE-APACHE", ""),
    ("crates/cenote-a/CHANGELOG.md", ""),
    ("LICENSE-MIT", "as is"),
    ("LICENSE-APACHE", ""),
    ("CHANGELOG.md", ""),
];

/// One of each of the files that xtask names, the first of them an entry of the ledger.
pub(super) const NAMED: Tree = &[
    ("crates/cenote/src/ledger/request.rs", ""),
    ("crates/cenote/src/ledger/alarm_round.rs", ""),
    ("crates/cenote/src/ledger/give_back.rs", ""),
    ("crates/cenote/src/ledger/sound.rs", ""),
    ("crates/cenote/src/ledger/upkeep.rs", ""),
    ("crates/cenote/src/ledger/whole.rs", ""),
    ("crates/cenote/src/ledger/work.rs", ""),
    ("crates/cenote/src/lease.rs", ""),
    ("crates/cenote/src/lib.rs", ""),
    ("crates/cenote/src/rt/on_shuttle.rs", ""),
    ("crates/cenote/src/shell/acquire.rs", ""),
    ("crates/cenote/src/time/alarm/in_model.rs", ""),
    ("crates/cenote/src/tray/mod.rs", ""),
];

/// More lines than any file may have.
pub(super) const LINES_401: &str = repeated(&[b'\n'; 401]);

pub(super) const TOO_MUCH_CODE: &str = repeated(&CODE);

static CODE: [u8; 2 * (MOST_LINES + 1)] = {
    let mut code = [b'\n'; 2 * (MOST_LINES + 1)];
    let mut at = 0;
    while at < code.len() {
        code[at] = b';';
        at += 2;
    }
    code
};

const fn repeated(lines: &'static [u8]) -> &'static str {
    match str::from_utf8(lines) {
        Ok(lines) => lines,
        Err(_) => panic!("bug: these bytes are text"),
    }
}
