//! Details of the rules about the core: its size, its folders, and the order of the ledger.

use super::super::core::{MOST_LINES, Size};
use super::{findings, tree_of};

const ROOT: &str = "crates/cenote/src/lib.rs";
const LEDGER: &str = "crates/cenote/src/ledger/mod.rs";
const REQUEST: &str = "crates/cenote/src/ledger/request.rs";
const SHELL: &str = "crates/cenote/src/shell/mod.rs";

#[test]
fn the_size_leaves_out_blank_lines_comments_and_tests() {
    let tree = tree_of(&[
        (
            ROOT,
            "//! Page.\n\nmod ledger; // one\n/// Two.\nfn f() {}\n#[cfg(test)]\nmod tests {\n}\n",
        ),
        (
            "crates/cenote/src/ledger/sound.rs",
            "fn assert_sound() {\n}\n",
        ),
        ("crates/cenote/src/ledger/tests/mod.rs", "fn f() {}"),
        ("crates/cenote/src/ledger/handover/mod.rs", "fn f() {}"),
        ("crates/cenote/src/tray/tests.rs", "fn f() {}"),
        ("crates/cenote-sqlx/src/lib.rs", "fn f() {}"),
    ]);

    let told = Size::of(&tree).to_string();
    let most = format!("(at most {MOST_LINES})");
    assert!(
        told.starts_with("the core has 2 lines of shipped code"),
        "{told}"
    );
    assert!(
        told.contains(&most) && told.ends_with("and 2 for checks and models"),
        "{told}"
    );
}

#[test]
fn the_ledger_wakes_nothing_keeps_no_globals_and_asks_no_runtime() {
    let bad = [
        "waker.wake();",
        "waker.wake_by_ref();",
        "thread_local!(static A: u8 = 0);",
        "static A: OnceLock<u8> = OnceLock::new();",
        "let home = Home::here();",
        "slot.home.is_gone()",
    ];
    for text in bad {
        let found = findings("pure ledger", &[(LEDGER, text)]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }
    assert_eq!(
        findings("pure ledger", &[(LEDGER, "orders.wake(waker);")]),
        [""; 0]
    );
}

#[test]
fn a_cycle_is_told_once_with_its_places() {
    let found = findings(
        "no cycles",
        &[
            (ROOT, ""),
            (
                LEDGER,
                "\nuse crate::{\n    time,\n    shell::{Shared, driver},\n};",
            ),
            (
                SHELL,
                "use crate::ledger::Ledger;\nuse crate::time::Moment;",
            ),
            ("crates/cenote/src/time/mod.rs", ""),
        ],
    );

    assert_eq!(found.len(), 1, "{found:?}");
    let cycle = "ledger → shell (ledger/mod.rs:2), shell → ledger (shell/mod.rs:1)";
    assert!(found[0].contains(cycle), "{found:?}");
}

#[test]
fn a_path_by_super_or_by_a_re_export_is_a_path_too() {
    let root = "mod shell;\npub use lease::Lease;\npub use pool::{Pool, WeakPool as Weak};";
    let uses = [
        (LEDGER, "use super::shell::Shared;"),
        (REQUEST, "use super::super::shell;"),
        (REQUEST, "mod inner { use super::super::super::shell; }"),
        (REQUEST, "fn f(pool: &crate::Pool) {}"),
        (REQUEST, "use crate::{time::Moment, Weak};"),
    ];
    for (path, text) in uses {
        let found = findings("doors stay above", &[(ROOT, root), (path, text)]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }

    let good =
        "use super::shell;\nuse crate::ledger::shell;\nuse shell::Pool;\nlet mycrate::shell;";
    let found = findings("doors stay above", &[(ROOT, root), (REQUEST, good)]);
    assert_eq!(found, [""; 0]);
}

#[test]
fn an_entry_calls_no_other_by_any_path() {
    let calls = [
        "self.give_up(now)",
        "self\n        .give_up(now)",
        "ledger.give_up()",
        "Self::give_up()",
        "Ledger::give_up()",
        "request::give_up()",
    ];
    for call in calls {
        let found = found_in_work(call);
        assert_eq!(found.len(), 1, "{call}: {found:?}");
    }
    let found = found_in_work("self.give_up(now)");
    let place = "crates/cenote/src/ledger/work.rs:2: one direction: calls `give_up`";
    assert!(found[0].starts_with(place), "{found:?}");

    let others = [
        "self.waker.give_up()",
        "it.give_up()",
        "self.not_give_up()",
        "self.add()",
    ];
    for call in others {
        assert_eq!(found_in_work(call), [""; 0], "{call}");
    }
}

fn found_in_work(call: &str) -> Vec<String> {
    let request = "
fn free() {}
impl Helper {
    fn add(&mut self) {}
}
impl<R: Resource> Ledger<R> {
    pub(crate) fn give_up(&mut self) {}
}
";
    let work = format!("fn opened() {{\n    {call};\n}}");
    let work = ("crates/cenote/src/ledger/work.rs", work.as_str());
    findings("one direction", &[(REQUEST, request), work])
}
