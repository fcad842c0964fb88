//! What tidy says about a crate on its way to the registry.

use super::findings;
use super::trees::READY;

const RULE: &str = "ready for the registry";

/// A library with all that the registry wants, and its manifest.
fn library(manifest: &str, first_file: &str) -> Vec<String> {
    let tree = [
        ("crates/cenote-a/Cargo.toml", manifest),
        ("crates/cenote-a/src/lib.rs", first_file),
        ("crates/cenote-a/README.md", ""),
        ("crates/cenote-a/LICENSE-MIT", ""),
        ("crates/cenote-a/LICENSE-APACHE", ""),
        ("crates/cenote-a/CHANGELOG.md", ""),
        ("LICENSE-MIT", ""),
        ("LICENSE-APACHE", ""),
        ("CHANGELOG.md", ""),
    ];
    findings(RULE, &tree)
}

const DOCS: &str = "[package.metadata.docs.rs]
all-features = true
rustdoc-args = [\"--cfg\", \"docsrs\"] # why
";
const SHOWS: &str = "#![cfg_attr(docsrs, feature(doc_cfg))]\n";

#[test]
fn a_library_says_how_its_pages_are_built() {
    assert_eq!(library(&format!("{READY}\n{DOCS}"), SHOWS), [""; 0]);

    let found = library(READY, SHOWS);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("no `all-features = true`"), "{found:?}");

    let found = library(&format!("{READY}\n{DOCS}"), "//! A library.\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("doc_cfg"), "{found:?}");
}

#[test]
fn every_missing_key_and_file_is_found() {
    let bare = [(
        "crates/cenote-a/Cargo.toml",
        "[package]\nname = \"cenote-a\"",
    )];
    let found = findings(RULE, &bare);

    for missing in [
        "`repository`",
        "`keywords`",
        "`rust-version`",
        "README.md",
        "LICENSE-MIT",
    ] {
        assert!(
            found.iter().any(|it| it.contains(missing)),
            "{missing} in {found:?}"
        );
    }
    assert!(
        found
            .iter()
            .any(|it| it.contains("`ln -s ../../CHANGELOG.md")),
        "{found:?}"
    );
}

#[test]
fn six_keywords_are_one_too_many() {
    let six = READY.replace("\"async\"", "\"a\", \"b\", \"c\", \"d\", \"e\"");
    let found = library(&format!("{six}\n{DOCS}"), SHOWS);

    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("6 keywords"), "{found:?}");
}

#[test]
fn a_crate_for_others_is_published_and_no_other_is() {
    let private = "[package]\nname = \"cenote-a\"\npublish = false";
    let found = findings(RULE, &[("crates/cenote-a/Cargo.toml", private)]);
    assert!(found[0].contains("not published"), "{found:?}");

    let servers = "[package]\nname = \"cenote-servers\"\npublish = false";
    let found = findings(RULE, &[("crates/cenote-servers/Cargo.toml", servers)]);
    assert_eq!(found, [""; 0]);
}

#[test]
fn an_address_of_a_file_that_is_gone_is_found() {
    let link = "see [it](https://github.com/cenote-rs/cenote/blob/main/guide/09.md) for more";
    let found = findings("true addresses", &[("crates/cenote-a/README.md", link)]);

    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("`guide/09.md` is not in the tree"),
        "{found:?}"
    );
}

#[test]
fn tests_that_lead_back_to_their_crate_do_so_by_path() {
    let other = "[package]\nname = \"b\"\n[dependencies]\nc.workspace = true";
    let third = "[package]\nname = \"c\"\n[dependencies]\na.workspace = true";
    let tests = |line: &str| {
        let manifest = format!("[package]\nname = \"a\"\n[dev-dependencies]\n{line}");
        let tree = [
            ("crates/a/Cargo.toml", manifest.as_str()),
            ("crates/b/Cargo.toml", other),
            ("crates/c/Cargo.toml", third),
        ];
        findings("shared dependencies", &tree)
    };

    assert_eq!(tests("b = { path = \"../b\" }"), [""; 0]);
    for versioned in [
        "b.workspace = true",
        "b = { path = \"../b\", version = \"1\" }",
    ] {
        let found = tests(versioned);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("give its path alone"), "{found:?}");
    }
    // Without a way back, the line is shared as all others are.
    assert_eq!(tests("d = { path = \"../d\" }").len(), 1);
}
