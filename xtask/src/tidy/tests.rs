//! Each rule has a tree that trips it and a tree that passes it.

use super::rules::RULES;
use super::{File, check};

/// Path and text of each file.
type Tree = &'static [(&'static str, &'static str)];

struct Case {
    rule: &'static str,
    trips: Tree,
    passes: Tree,
}

const CASES: &[Case] = &[
    Case {
        rule: "one room for tokio",
        trips: &[("crates/cenote/src/pool.rs", "tokio::spawn(work);")],
        passes: &[
            ("crates/cenote/src/pool.rs", "/// use tokio::spawn"),
            ("crates/cenote/src/rt.rs", "use tokio::time;"),
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
        passes: &[("README.md", "# cenote")],
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

const LINES_401: &str = match str::from_utf8(&[b'\n'; 401]) {
    Ok(lines) => lines,
    Err(_) => panic!("bug: line ends are text"),
};

#[test]
fn every_rule_has_its_case() {
    let rules: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    let cases: Vec<&str> = CASES.iter().map(|case| case.rule).collect();

    assert_eq!(rules, cases);
}

#[test]
fn a_bad_tree_trips_its_rule_once() {
    for case in CASES {
        assert_eq!(findings(case.rule, case.trips).len(), 1, "{}", case.rule);
    }
}

#[test]
fn a_good_tree_passes_its_rule() {
    for case in CASES {
        assert_eq!(findings(case.rule, case.passes), [""; 0], "{}", case.rule);
    }
}

#[test]
fn a_finding_names_file_line_rule_and_reason() {
    let found = findings(
        "no bare unwrap",
        &[("crates/cenote/src/pool.rs", "//! The door.\nslot.unwrap();")],
    );

    assert_eq!(
        found,
        ["crates/cenote/src/pool.rs:2: no bare unwrap: `.unwrap()`: \
          return an error, or `expect` the rule that makes it safe"]
    );
}

#[test]
fn a_rule_without_a_file_to_read_is_a_finding() {
    let found = findings("two commands", &[]);

    assert!(found[0].contains("no file to read"), "{found:?}");
}

#[test]
fn a_dependency_in_a_table_of_its_own_is_a_finding() {
    let tables = "[workspace.dependencies.serde]\nversion = \"1\" # config";
    assert_eq!(
        findings("reasons for dependencies", &[("Cargo.toml", tables)]).len(),
        1
    );

    let tables = "[dependencies.serde]\nworkspace = true";
    assert_eq!(
        findings("shared dependencies", &[("xtask/Cargo.toml", tables)]).len(),
        1
    );
}

fn findings(name: &str, tree: &[(&str, &str)]) -> Vec<String> {
    let rule = RULES.iter().find(|rule| rule.name == name);
    let rule = rule.expect("the case names a rule");
    let tree: Vec<File> = tree
        .iter()
        .map(|&(path, text)| File {
            path: path.to_owned(),
            text: text.to_owned(),
        })
        .collect();
    check(rule, &tree)
}
