//! Promises of the reader of manifests.

use super::{
    entries, features, is_published, package_name, package_value, split_comment,
    versioned_dependencies,
};

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
fn a_crate_is_published_unless_it_says_no() {
    assert!(is_published(MANIFEST));
    assert!(!is_published(
        "[package]\nname = \"xtask\"\npublish = false\n"
    ));
    assert!(!is_published("[workspace]\nresolver = \"3\"\n"));
}

#[test]
fn a_value_of_the_package_may_come_from_the_workspace() {
    let text = "[package]\nlicense.workspace = true\nrust-version = \"1.85\" # why\n";

    assert_eq!(package_value(text, "license"), Some("true"));
    assert_eq!(package_value(text, "rust-version"), Some("1.85"));
    assert_eq!(package_value(text, "readme"), None);
}

#[test]
fn a_dependency_by_path_is_not_in_a_published_manifest() {
    let text = "[dependencies]\na.workspace = true\n[dev-dependencies]\n\
                b = { workspace = true }\nc = { path = \"../c\" }\n";

    assert_eq!(versioned_dependencies(text), ["a", "b"]);
}

#[test]
fn features_are_the_table_and_the_optional_dependencies_that_are_not_hidden() {
    assert_eq!(features(MANIFEST), ["tokio", "sqlite", "config"]);
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
