//! The core crate as a whole: its size, the names of its files, and the order of the ledger.

use crate::mutants;

use super::paths::{CORE, is_core, is_test};
use super::source::{end_of_block, first_word, is_word, line_of, read, shipped_code};
use super::{File, Found};

/// Lines of shipped code, without blank lines, comments and tests. The pool itself has 7,500. The
/// rest is for what stands beside it: observers that come and go and the list of pools, rules of
/// scopes, their labels and values, and the handle that goes by them, closures that fail, classes
/// of errors, refusals by reason, futures that wait for a state of the pool, permits, slots that
/// other code uses, a part that is kept apart for callers that must not wait behind the others,
/// meters of use, severers, the pool's own probe, breakers that several pools share, the log, the
/// advice, the look inside and the control of a pool of any kind for a page, the list of settings
/// for the builders of other crates, an upkeep task that many pools share, eviction on request,
/// opens that are called off, opens that wait for a place at a full backend, pools on the leases of
/// other pools, and pools of one thread, with doors of their own.
pub(super) const MOST_LINES: usize = 12_960;

/// Files of the core that are compiled for checks and models only.
const FOR_CHECKS: &[&str] = &[
    "ledger/sound.rs",
    "rt/on_shuttle.rs",
    "time/alarm/in_model.rs",
];

/// Files of the ledger that the shell enters. Each reads down into the rest of the ledger.
const ENTRIES: &[&str] = &[
    "ledger/request.rs",
    "ledger/give_back.rs",
    "ledger/work.rs",
    "ledger/upkeep.rs",
    "ledger/alarm_round.rs",
    "ledger/whole.rs",
];

/// Lines of code of the core.
pub(super) struct Size {
    shipped: usize,
    for_checks: usize,
}

impl Size {
    pub(super) fn of(tree: &[File]) -> Self {
        let mut size = Self {
            shipped: 0,
            for_checks: 0,
        };
        let code = tree.iter().filter(|file| is_core(&file.path));
        for file in code.filter(|file| !is_test(&file.path)) {
            let lines = read(&file.text).into_iter();
            let count = lines
                .filter(|line| line.has_code() && !line.is_test)
                .count();
            if FOR_CHECKS.contains(&in_core(file)) {
                size.for_checks += count;
            } else {
                size.shipped += count;
            }
        }
        size
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            shipped,
            for_checks,
        } = self;
        write!(
            f,
            "the core has {shipped} lines of shipped code (at most {MOST_LINES}), \
             and {for_checks} for checks and models"
        )
    }
}

pub(super) fn is_small_enough(_: &File, tree: &[File]) -> Vec<Found> {
    let size = Size::of(tree);
    if size.shipped > MOST_LINES {
        vec![(1, size.to_string())]
    } else {
        Vec::new()
    }
}

/// Of two files with one name, the second is found.
pub(super) fn has_own_name(file: &File, tree: &[File]) -> Vec<Found> {
    let name = name_of(&file.path);
    if matches!(name, "mod.rs" | "tests.rs") {
        return Vec::new();
    }
    let core = tree.iter().filter(|other| is_core(&other.path));
    let mut twins = core.filter(|other| name_of(&other.path) == name && other.path < file.path);
    let twin = twins.next();
    twin.map(|twin| (1, format!("`{}` has that name too", in_core(twin))))
        .into_iter()
        .collect()
}

pub(super) fn is_entry(path: &str) -> bool {
    let file = path.strip_prefix(CORE).unwrap_or_default();
    ENTRIES.contains(&file)
}

/// Entries must not call each other's functions. A step that two of them need is in a file below.
pub(super) fn calls_no_other_entry(file: &File, tree: &[File]) -> Vec<Found> {
    let code = shipped_code(&file.text);
    let mut found = Vec::new();
    let others = tree.iter().filter(|other| is_entry(&other.path));
    for other in others.filter(|other| other.path != file.path) {
        let entry = name_of(&other.path).trim_end_matches(".rs");
        for name in entries_of(&shipped_code(&other.text)) {
            for (at, _) in code.match_indices(&format!("{name}(")) {
                if is_call_of_ledger(&code[..at], entry) {
                    let line = line_of(&code, at);
                    found.push((line, format!("calls `{name}` of {}", in_core(other))));
                }
            }
        }
    }
    found.sort();
    found
}

/// The functions of the ledger, and the free ones. Those of helper types are not called from
/// elsewhere.
fn entries_of(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut free_from = 0;
    for (at, _) in code.match_indices("\nimpl") {
        let (free, block) = code.split_at(at);
        let Some(opened) = block.find('{') else {
            continue;
        };
        let end = opened + end_of_block(&block[opened..]);
        names.extend(functions(free.get(free_from..).unwrap_or_default()));
        free_from = at + end;
        if block[..opened].contains("Ledger") {
            names.extend(functions(&block[..end]));
        }
    }
    names.extend(functions(&code[free_from..]));
    names
}

/// Returns whether a name after this code is called by `self.`, `ledger.`, `Self::`, `Ledger::`, or
/// by the name of the entry's file.
fn is_call_of_ledger(before: &str, entry: &str) -> bool {
    let ends_with = |text: &str, word: &str| {
        let rest = text.strip_suffix(word);
        rest.is_some_and(|rest| !rest.ends_with(|letter| is_word(letter) || letter == '.'))
    };
    if let Some(receiver) = before.strip_suffix('.') {
        let receiver = receiver.trim_end();
        return ends_with(receiver, "self") || ends_with(receiver, "ledger");
    }
    let path = before.strip_suffix("::").unwrap_or_default();
    ["Self", "Ledger", entry]
        .iter()
        .any(|it| ends_with(path, it))
}

/// Files that a rule or a command names must be there, or it would check nothing.
pub(super) fn named_files_exist(_: &File, tree: &[File]) -> Vec<Found> {
    let rules = FOR_CHECKS.iter().chain(ENTRIES);
    let rules = rules.map(|file| format!("{CORE}{file}"));
    let globs = mutants::CORE.iter().map(|glob| glob.replace("*.rs", ""));
    let missing = rules.chain(globs).filter(|path| {
        let mut files = tree.iter();
        !files.any(|file| file.path.starts_with(path.as_str()))
    });
    missing
        .map(|path| (1, format!("xtask names `{path}`, which is not in the tree")))
        .collect()
}

/// The names of the functions that this code defines.
pub(super) fn functions(code: &str) -> impl Iterator<Item = &str> {
    let places = code.match_indices("fn ").filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        !before.is_some_and(is_word)
    });
    let names = places.map(|(at, mark)| first_word(&code[at + mark.len()..]));
    names.filter(|name| !name.is_empty())
}

/// The path from the core's source folder on.
fn in_core(file: &File) -> &str {
    file.path.strip_prefix(CORE).unwrap_or(&file.path)
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
