//! What must hold before an upload.

use crate::packages::Package;

use super::order::by_need;
use super::{BY_HAND, is_described, one_version, run};

#[test]
fn a_crate_is_uploaded_after_those_that_it_needs() {
    let packages = vec![
        package(
            "a",
            "[dependencies]\nc = { workspace = true, optional = true }",
        ),
        package("b", "[dev-dependencies]\na = { path = \"../a\" }"),
        package(
            "c",
            "[dependencies]\nb.workspace = true\n[dev-dependencies]\nd.workspace = true",
        ),
        package("d", "[dependencies]\ntokio.workspace = true"),
    ];

    let ordered = by_need(packages).expect("an order");

    let names: Vec<&str> = ordered.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["b", "d", "c", "a"]);
}

#[test]
fn crates_that_need_each_other_cannot_be_uploaded() {
    let packages = vec![
        package("a", "[dependencies]\nb.workspace = true"),
        package("b", "[dev-dependencies]\na.workspace = true"),
    ];

    let failure = by_need(packages).err();
    assert_eq!(failure.as_deref(), Some("no order is possible for: a, b"));
}

#[test]
fn all_crates_have_the_version_of_the_workspace() {
    let root = "[workspace.package]\nversion = \"0.2.0\"\n[workspace.dependencies]\n\
                a = { path = \"a\", version = \"0.2.0\" } # ours\n\
                b = { path = \"b\" } # private\nserde = \"1\" # config\n";
    assert_eq!(one_version(root).as_deref(), Ok("0.2.0"));

    let older = root.replace("\"a\", version = \"0.2.0\"", "\"a\", version = \"0.1.0\"");
    let failure = one_version(&older).expect_err("an older version");
    assert!(failure.starts_with("Cargo.toml:4: `a`"), "{failure}");
}

#[test]
fn the_changelog_begins_with_the_version() {
    assert_eq!(
        is_described("# Changelog\n\n## 0.2.0\n\n## 0.1.0\n", "0.2.0"),
        Ok(())
    );
    assert!(is_described("## 0.2.0 (unreleased)\n", "0.2.0").is_err());
    assert!(is_described("## 0.1.0\n", "0.2.0").is_err());
}

#[test]
fn without_dry_run_the_command_refuses_and_says_what_to_do() {
    assert_eq!(run(&[]), Err(BY_HAND.to_owned()));
    assert!(BY_HAND.contains("cargo publish --workspace"));
}

fn package(name: &str, manifest: &str) -> Package {
    Package {
        name: name.to_owned(),
        manifest: manifest.to_owned(),
        has_library: true,
    }
}
