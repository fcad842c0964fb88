//! What the workspace of the floors promises.

use super::msrv::is_toolchain;
use super::workspace::{Member, Workspace, is_newer};

const ROOT: &str = r#"
[workspace]
members = ["crates/*", "xtask"]

[workspace.dependencies]
cenote = { path = "crates/cenote", version = "0.1.0" } # ours
proptest = "1.12" # for tests
tokio = { version = "1.49", default-features = false } # tasks
serde = "1.0.219" # config

[workspace.lints.rust]
unsafe_code = "forbid"
"#;

const CORE: &str = r#"
[package]
name = "cenote"
rust-version = "1.85"

[features]
serde = ["dep:serde"]

[dependencies]
serde = { workspace = true, optional = true }

[target.'cfg(unix)'.dependencies]
tokio.workspace = true

[dev-dependencies]
proptest.workspace = true
tokio = { workspace = true, features = ["macros"] }

[[test]]
name = "model"

[lints]
workspace = true
"#;

const SQL: &str = r#"
[package]
name = "cenote-sqlx"
rust-version = "1.94"

[lib]
proc-macro = true
"#;

const HTTP: &str = r#"
[package]
name = "cenote-tower"
rust-version = "1.85"

[features]
axum = ["dep:axum"]
sqlx = ["dep:cenote-sqlx"]
"#;

const LOCK: &str = r#"
[[package]]
name = "serde"
version = "1.0.219"
source = "registry"

[[package]]
name = "tokio"
version = "1.49.0"
source = "registry"
"#;

#[test]
fn a_member_keeps_its_source_and_leaves_its_tests() {
    let manifest = member(CORE).manifest();

    assert!(manifest.contains("[lib]\npath = \"../../../../crates/cenote/src/lib.rs\"\n"));
    assert!(manifest.contains("[target.'cfg(unix)'.dependencies]\ntokio.workspace = true\n"));
    assert!(
        manifest.contains("[lints]\nworkspace = true\n"),
        "{manifest}"
    );
    let tests = "[dev-dependencies]\ntokio = { workspace = true, features = [\"macros\"] }\n";
    assert!(manifest.ends_with(tests), "{manifest}");
    assert!(!manifest.contains("proptest"), "{manifest}");
    assert!(!manifest.contains("model"), "{manifest}");
}

#[test]
fn a_member_has_one_table_for_its_library() {
    let manifest = member(SQL).manifest();

    assert_eq!(manifest.matches("[lib]").count(), 1, "{manifest}");
    assert!(
        manifest.contains("lib.rs\"\nproc-macro = true\n"),
        "{manifest}"
    );
}

#[test]
fn the_root_lists_the_members_and_shares_versions_and_lints() {
    let manifest = workspace().manifest();

    assert!(
        manifest.contains("\"crates/cenote\", \"crates/cenote-sqlx\""),
        "{manifest}"
    );
    assert!(
        manifest.contains("tokio = { version = \"1.49\""),
        "{manifest}"
    );
    assert!(manifest.contains("unsafe_code"), "{manifest}");
    assert!(!manifest.contains("xtask"), "{manifest}");
}

#[test]
fn a_private_crate_has_no_floors() {
    assert!(Member::published("[package]\nname = \"xtask\"\npublish = false\n").is_none());
}

#[test]
fn the_lock_file_has_the_oldest_version_and_no_other() {
    assert_eq!(workspace().has_floors_of(LOCK), Ok(()));

    let newer = LOCK.replace("1.49.0", "1.54.1");
    let failure = workspace()
        .has_floors_of(&newer)
        .expect_err("a newer tokio");
    assert!(failure.contains("tokio 1.49.0"), "{failure}");
    assert!(failure.contains("(1.54.1)"), "{failure}");
}

#[test]
fn an_old_rust_builds_no_feature_that_needs_a_newer_one() {
    let features = member(HTTP).features_for("1.85", &workspace());
    assert_eq!(features, ["axum"]);

    let features = member(HTTP).features_for("1.94", &workspace());
    assert_eq!(features, ["axum", "sqlx"]);
}

#[test]
fn a_toolchain_is_known_by_its_version() {
    assert!(is_toolchain("1.85-x86_64-unknown-linux-gnu", "1.85"));
    assert!(is_toolchain("1.85.1-x86_64-unknown-linux-gnu", "1.85"));
    assert!(!is_toolchain("1.8-x86_64-unknown-linux-gnu", "1.85"));
    assert!(!is_toolchain("stable-x86_64-unknown-linux-gnu", "1.85"));
    assert!(is_newer("1.94", "1.85") && is_newer("1.100", "1.94") && !is_newer("1.85", "1.85"));
}

fn member(text: &str) -> Member {
    Member::published(text).expect("a published crate")
}

fn workspace() -> Workspace {
    Workspace {
        root: ROOT.to_owned(),
        members: [CORE, SQL, HTTP].map(member).into(),
    }
}
