//! A tree that trips each rule, and a tree that passes it.

use super::trees::{ADDRESSES, LINES_401, NAMED, PUBLISHED, TOO_MUCH_CODE};

/// A line of 101 characters. Each is longer than a byte, because columns are not bytes.
macro_rules! wide {
    () => {
        concat!(
            "äääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääää",
            "ööööööööööööööööööööööööööööööö"
        )
    };
}

const WIDE: &str = wide!();

/// The four walks, the first with this step.
macro_rules! walks {
    ($step:literal) => {
        concat!(
            "## One acquire, in the order of the files\n\n**Tray trip**\n",
            $step,
            "\n\n### Wait and hand-over\n1. the giver\n   takes it: `tray::take`\n",
            "### Timeout\n- `tray::take`\n**A failed open**\n* `tray::take`\n## Time\n"
        )
    };
}

/// Twenty words.
macro_rules! words {
    () => {
        "- a, b, c, d, e: letters\n- f, g, h, i, j: letters\n- k, l, m, n, o\n- p, q, r, s, t\n"
    };
}

/// Path and text of each file.
pub(super) type Tree = &'static [(&'static str, &'static str)];

pub(super) struct Case {
    pub(super) rule: &'static str,
    pub(super) trips: Tree,
    pub(super) passes: Tree,
}

pub(super) const CASES: &[Case] = &[
    Case {
        rule: "one room for tokio",
        trips: &[("crates/cenote/src/pool.rs", "tokio::spawn(work);")],
        passes: &[
            ("crates/cenote/src/pool.rs", "/// use tokio::spawn"),
            ("crates/cenote/src/rt/mod.rs", "pub(crate) use on_tokio::*;"),
            ("crates/cenote/src/rt/on_tokio.rs", "use tokio::time;"),
        ],
    },
    Case {
        rule: "pure ledger",
        trips: &[(
            "crates/cenote/src/ledger/mod.rs",
            "let now = Instant::now();",
        )],
        passes: &[
            (
                "crates/cenote/src/ledger/mod.rs",
                "//! No Observer, no .await",
            ),
            (
                "crates/cenote/src/ledger/tests.rs",
                "println!(\"seed {seed}\");",
            ),
        ],
    },
    Case {
        rule: "small core",
        trips: &[("crates/cenote/src/lib.rs", TOO_MUCH_CODE)],
        passes: &[
            ("crates/cenote/src/lib.rs", LINES_401),
            ("crates/cenote/src/ledger/tests/mod.rs", TOO_MUCH_CODE),
            ("crates/cenote/src/rt/on_shuttle.rs", TOO_MUCH_CODE),
        ],
    },
    Case {
        rule: "one name, one file",
        trips: &[
            ("crates/cenote/src/breaker.rs", ""),
            ("crates/cenote/src/ledger/breaker.rs", ""),
        ],
        passes: &[
            ("crates/cenote/src/time/mod.rs", ""),
            ("crates/cenote/src/tray/mod.rs", ""),
            ("crates/cenote/src/time/tests.rs", ""),
            ("crates/cenote/src/tray/tests.rs", ""),
            ("crates/cenote-tower/src/scope.rs", ""),
            ("crates/cenote/src/scope.rs", ""),
        ],
    },
    Case {
        rule: "no cycles",
        trips: &[
            ("crates/cenote/src/lib.rs", ""),
            ("crates/cenote/src/tray/mod.rs", "use crate::time::Moment;"),
            (
                "crates/cenote/src/time/mod.rs",
                "use crate::{pool, rt::now};",
            ),
            (
                "crates/cenote/src/rt/mod.rs",
                "fn f() -> crate::tray::Tray {}",
            ),
        ],
        passes: &[
            ("crates/cenote/src/lib.rs", "mod rt; mod time;"),
            ("crates/cenote/src/time/mod.rs", "use crate::rt::now;"),
            (
                "crates/cenote/src/rt/mod.rs",
                "/// As [`crate::time`] has it.\n#[cfg(test)]\nmod tests {\n use crate::time;\n}",
            ),
            ("crates/cenote/src/rt/tests.rs", "use crate::time::Moment;"),
        ],
    },
    Case {
        rule: "doors stay above",
        trips: &[(
            "crates/cenote/src/tray/mod.rs",
            "use crate::{rt, pool::Pool};",
        )],
        passes: &[
            (
                "crates/cenote/src/tray/mod.rs",
                "//! For [`crate::pool`].\nuse crate::rt;",
            ),
            (
                "crates/cenote/src/shell/acquire.rs",
                "use crate::pool::Pool;",
            ),
        ],
    },
    Case {
        rule: "one direction",
        trips: &[
            (
                "crates/cenote/src/ledger/request.rs",
                "fn serve(&mut self) {}",
            ),
            (
                "crates/cenote/src/ledger/work.rs",
                "fn opened(&mut self) { self.serve(); }",
            ),
        ],
        passes: &[
            (
                "crates/cenote/src/ledger/request.rs",
                "fn request(&mut self) { self.serve(); }",
            ),
            (
                "crates/cenote/src/ledger/work.rs",
                "// Not `self.request()`.\nfn opened(&mut self) { self.serve(); }",
            ),
            (
                "crates/cenote/src/ledger/growth.rs",
                "fn serve(&mut self) {}",
            ),
        ],
    },
    Case {
        rule: "named files",
        trips: NAMED.split_at(1).1,
        passes: NAMED,
    },
    Case {
        rule: "abandoned words",
        trips: &[(
            "crates/cenote/src/tray/mod.rs",
            "//! Slots that are set Aside.",
        )],
        passes: &[
            (
                "crates/cenote/src/tray/mod.rs",
                "#[cold]\nfn ticket() {} // besides",
            ),
            (
                "crates/cenote-sqlx/src/lease.rs",
                "//! As a book in a library.",
            ),
        ],
    },
    Case {
        rule: "safe code",
        trips: &[("xtask/src/main.rs", concat!("uns", "afe { *pointer }"))],
        passes: &[(
            "xtask/src/main.rs",
            concat!("#![forbid(unsafe_code)] // nothing uns", "afe here"),
        )],
    },
    Case {
        rule: "nothing left over",
        trips: &[("examples/drain.rs", concat!("// TO", "DO: the rest"))],
        passes: &[("examples/drain.rs", "// nothing to do: all is done")],
    },
    Case {
        rule: "no bare unwrap",
        trips: &[("crates/cenote/src/pool.rs", "slot.unwrap();")],
        passes: &[
            ("crates/cenote/src/pool.rs", "/// pool.close().unwrap();"),
            ("crates/cenote/src/config/tests.rs", "build().unwrap();"),
            ("crates/cenote/src/tests/rig.rs", "build().unwrap();"),
            ("crates/cenote/tests/it/main.rs", "build().unwrap();"),
        ],
    },
    Case {
        rule: "first line",
        trips: &[("examples/drain.rs", "//! How do I drain?")],
        passes: &[
            (
                "examples/drain.rs",
                "//! cargo run -p cenote-examples --example drain",
            ),
            (
                "crates/cenote/src/lib.rs",
                "#![doc = include_str!(\"../README.md\")]",
            ),
            ("crates/cenote/src/pool.rs", "//! The door."),
        ],
    },
    Case {
        rule: "short files",
        trips: &[("xtask/src/main.rs", LINES_401)],
        passes: &[("xtask/src/main.rs", "//! One."), ("Cargo.lock", LINES_401)],
    },
    Case {
        rule: "plain subjects",
        trips: &[("CHANGELOG.md", "- Nobody waits.")],
        passes: &[
            ("CHANGELOG.md", "- No waiter is forgotten."),
            (
                "examples/drain.rs",
                "assert_eq!(name, \"nobody\"); // the server answers with 503",
            ),
            (
                "crates/cenote-macros/tests/ui/misuse.rs",
                "// Whoever reads this.",
            ),
        ],
    },
    Case {
        rule: "100 columns",
        trips: &[("CONTRIBUTING.md", WIDE)],
        passes: &[
            (
                "CONTRIBUTING.md",
                concat!("|", wide!(), "\n```\n", wide!(), "\n```\n"),
            ),
            ("README.md", concat!("https://", wide!())),
            (
                "examples/drain.rs",
                concat!("    say(\"", wide!(), "\");\n/// | ", wide!()),
            ),
            ("benchmarks/chart.svg", WIDE),
        ],
    },
    Case {
        rule: "code first",
        trips: &[(
            "README.md",
            "# cenote\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n```rust\n```\n",
        )],
        passes: &[(
            "README.md",
            "# cenote\n\n\n\n\n\n\n\n\n\n\n\n\n\n```rust\n```\n",
        )],
    },
    Case {
        rule: "two commands",
        trips: &[("README.md", "`cargo run --release` runs it")],
        passes: &[("README.md", "`cargo run --release` and `cargo xtask test`")],
    },
    Case {
        rule: "short documents",
        trips: &[("ARCHITECTURE.md", LINES_401)],
        passes: &[("ARCHITECTURE.md", "# Architecture")],
    },
    Case {
        rule: "short README",
        trips: &[("README.md", LINES_401)],
        passes: &[("README.md", "# cenote")],
    },
    Case {
        rule: "true addresses",
        trips: &[("README.md", "![one](chart.svg)"), ("chart.svg", "")],
        passes: ADDRESSES,
    },
    Case {
        rule: "true map",
        trips: &[
            (
                "ARCHITECTURE.md",
                "`ledger/` decides, `ledger/shelf.rs` keeps",
            ),
            ("crates/cenote/src/ledger/slot.rs", ""),
        ],
        passes: &[
            (
                "ARCHITECTURE.md",
                "`ledger/`, `crates/cenote/src/ledger/slot.rs`, `a / b/`, `Vec`",
            ),
            ("crates/cenote/src/ledger/slot.rs", ""),
        ],
    },
    Case {
        rule: "true walks",
        trips: &[
            ("ARCHITECTURE.md", walks!("- `tray::lay_back`")),
            ("crates/cenote/src/tray/mod.rs", "pub(crate) fn take() {}"),
        ],
        passes: &[
            ("ARCHITECTURE.md", walks!("- `tray::take`: a `Lease`")),
            ("crates/cenote/src/tray/mod.rs", "pub(crate) fn take() {}"),
        ],
    },
    Case {
        rule: "twenty words",
        trips: &[(
            "ARCHITECTURE.md",
            concat!("## Words\n", words!(), "- **mailbox**: …\n"),
        )],
        passes: &[(
            "ARCHITECTURE.md",
            concat!("## Words\n", words!(), "## Time\n- one more\n"),
        )],
    },
    Case {
        rule: "reasons for dependencies",
        trips: &[("Cargo.toml", "[workspace.dependencies]\nserde = \"1\"")],
        passes: &[(
            "Cargo.toml",
            "[workspace.dependencies]\nserde = \"1\" # config",
        )],
    },
    Case {
        rule: "shared dependencies",
        trips: &[("xtask/Cargo.toml", "[dev-dependencies]\nserde = \"1\"")],
        passes: &[(
            "xtask/Cargo.toml",
            "[package]\nname = \"xtask\"\n[dependencies]\nserde.workspace = true\n[dev-dependencies]\ntokio = { workspace = true }",
        )],
    },
    Case {
        rule: "ready for the registry",
        trips: &[("benchmarks/Cargo.toml", "[package]\nname = \"b\"")],
        passes: PUBLISHED,
    },
    Case {
        rule: "lean packages",
        trips: &[
            (
                "crates/cenote-a/Cargo.toml",
                "[package]\nname = \"cenote-a\"",
            ),
            ("crates/cenote-a/tests/it/main.rs", ""),
        ],
        passes: &[
            (
                "crates/cenote-a/Cargo.toml",
                "[package]\nname = \"cenote-a\"\nexclude = [\"tests/\"]",
            ),
            ("crates/cenote-a/src/lib.rs", ""),
            ("crates/cenote-a/tests/it/main.rs", ""),
            ("crates/cenote-ab/tests/it/main.rs", ""),
        ],
    },
    Case {
        rule: "index of examples",
        trips: &[
            ("examples/drain.rs", ""),
            ("examples/README.md", "- `timeout`"),
        ],
        passes: &[
            ("examples/drain.rs", ""),
            ("examples/README.md", "- `drain`"),
        ],
    },
    Case {
        rule: "no workplace",
        trips: &[("README.md", concat!("see ../sh", "ared for more"))],
        passes: &[("README.md", "see ARCHITECTURE.md for more")],
    },
];
