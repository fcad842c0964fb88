//! Promises of the reader of manifests.

use super::{entries, features, package_name, split_comment, tests_depend_on};

const MANIFEST: &str = r##"
[package]
name = "cenote-sql" # the package

[dependencies]
tokio = { workspace = true, optional = true }
serde = { workspace = true, optional = true }

[features]
default = ["sqlite"]
sqlite = []
config = [
    "dep:serde",
]
"##;

#[test]
fn the_package_is_named_without_quotes_or_comment() {
    assert_eq!(package_name(MANIFEST), Some("cenote-sql"));
}

#[test]
fn features_are_the_table_and_the_optional_dependencies_that_are_not_hidden() {
    assert_eq!(features(MANIFEST), ["tokio", "sqlite", "config"]);
}

#[test]
fn only_a_dependency_of_the_tests_is_one() {
    let mine = "[dependencies]\ncenote-servers.workspace = true\n";
    let of_tests = "[dev-dependencies]\ncenote-servers.workspace = true\n";
    let with_a_table = "[dev-dependencies]\ncenote-servers = { workspace = true }\n";

    assert!(!tests_depend_on(mine, "cenote-servers"));
    assert!(tests_depend_on(of_tests, "cenote-servers"));
    assert!(tests_depend_on(with_a_table, "cenote-servers"));
    assert!(!tests_depend_on(of_tests, "cenote"));
}

#[test]
fn an_entry_knows_its_line_table_and_comment() {
    let entries = entries("[workspace.dependencies]\nserde = \"1#2\" # config\n");

    assert_eq!(entries[0].line, 2);
    assert_eq!(entries[0].table, "workspace.dependencies");
    assert_eq!(entries[0].comment, "config");
}

#[test]
fn a_comment_mark_in_quotes_is_text() {
    assert_eq!(split_comment(r#"a("//"); // b"#, "//").1, " b");
    assert_eq!(split_comment(r#"a("\"//");"#, "//").1, "");
    assert_eq!(split_comment(r#"a('"'); // b"#, "//").1, " b");
}
