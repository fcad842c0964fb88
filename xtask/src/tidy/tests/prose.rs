//! Details of the rules about words, walks and wide lines.

use super::findings;

const TRAY: (&str, &str) = ("crates/cenote/src/tray/mod.rs", "fn take() {}");

#[test]
fn an_abandoned_word_is_found_in_names_and_strings() {
    let bad = [
        "struct LoanEnd;",
        "fn end_of_loan() {}",
        "say(\"a loan\");",
        "type Cold = u8;",
    ];
    for text in bad {
        let found = findings("abandoned words", &[("crates/cenote/src/pool.rs", text)]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }

    let good = ["loaned", "sloan", "Ticket", "#[cold]", "a polite close"];
    for text in good {
        let found = findings("abandoned words", &[("crates/cenote/src/pool.rs", text)]);
        assert_eq!(found, [""; 0], "{text}");
    }
}

#[test]
fn a_riddle_is_found_in_any_comment() {
    let bad = [
        "// One who waits.",
        "fn f() {} // for those who",
        "/* whoever */",
        "//! Answers with it.",
    ];
    for text in bad {
        let found = findings("plain subjects", &[("examples/drain.rs", text)]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }
}

#[test]
fn a_wide_comment_is_found_though_it_quotes() {
    let words = "\"word\" ".repeat(15);
    for text in [format!("/// {words}"), format!("f(); // {words}")] {
        let found = findings("100 columns", &[("examples/drain.rs", &text)]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }

    let example = format!("/// ```\n/// say({words});\n/// ```\n");
    assert_eq!(
        findings("100 columns", &[("examples/drain.rs", &example)]),
        [""; 0]
    );
}

#[test]
fn each_walk_is_there_and_is_short() {
    let heading = "## One acquire, in the order of the files\n";
    let steps = "1. `tray::take`\n".repeat(11);
    let text = format!("{heading}**Tray trip**\n{steps}**Hand-over**\n- pending\n**Timeout**\n");

    let found = findings("true walks", &[("ARCHITECTURE.md", &text), TRAY]);

    let seen = [
        "ARCHITECTURE.md:1: true walks: no walk has `failed open` in its title",
        "ARCHITECTURE.md:2: true walks: `Tray trip` has 11 steps",
        "ARCHITECTURE.md:15: true walks: a step without `file::function`",
        "ARCHITECTURE.md:16: true walks: `Timeout` has 0 steps",
    ];
    assert_eq!(found.len(), seen.len(), "{found:?}");
    for (found, seen) in found.iter().zip(seen) {
        assert!(found.starts_with(seen), "{found}");
    }
}

#[test]
fn a_walk_finds_flat_files_nested_files_and_folders() {
    let title = ["tray", "hand-over", "timeout", "failed open"].map(|it| format!("### {it}\n"));
    let step = "- `pool::acquire` `time/alarm/on_thread::run` `tray::take` `Lease::new` `a::b()`\n";
    let text = format!(
        "## One acquire, in the order of the files\n{}{step}",
        title.join(step)
    );
    let tree = [
        ("ARCHITECTURE.md", text.as_str()),
        (
            "crates/cenote/src/pool.rs",
            "pub async fn acquire(&self) {}",
        ),
        ("crates/cenote/src/time/alarm/on_thread.rs", "fn run() {}"),
        TRAY,
    ];
    assert_eq!(findings("true walks", &tree), [""; 0]);

    let found = findings("true walks", &tree[..3]);
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn a_document_without_walks_or_words_is_a_finding() {
    let bare = [("ARCHITECTURE.md", "# Architecture\n")];
    assert_eq!(findings("true walks", &bare).len(), 1);
    assert_eq!(findings("twenty words", &bare).len(), 1);
}

#[test]
fn the_words_of_a_table_are_counted_without_its_head() {
    let head = "## Words\n\n| word | meaning |\n|---|---|\n";
    let twenty = format!("{head}{}", "| **slot** | a place, and more |\n".repeat(20));
    let more = format!("{twenty}| ledger | decides |\n");

    assert_eq!(
        findings("twenty words", &[("ARCHITECTURE.md", &twenty)]),
        [""; 0]
    );
    assert_eq!(
        findings("twenty words", &[("ARCHITECTURE.md", &more)]).len(),
        1
    );
}
