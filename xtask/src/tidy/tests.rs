//! Each rule has a tree that trips it and a tree that passes it. Details are in the files below.

mod cases;
mod core;
mod prose;
mod registry;
mod source;
mod trees;

use super::rules::RULES;
use super::{File, check};

use cases::CASES;

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
    check(rule, &tree_of(tree))
}

fn tree_of(files: &[(&str, &str)]) -> Vec<File> {
    let files = files.iter().map(|&(path, text)| File {
        path: path.to_owned(),
        text: text.to_owned(),
    });
    files.collect()
}
