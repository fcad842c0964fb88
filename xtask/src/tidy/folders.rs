//! The folders of the core crate: which of them uses which, by the paths in their code.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{CORE, is_core, is_core_root, is_test};
use super::source::{end_of_block, first_word, is_word, line_of, shipped_code};
use super::{File, Found};

/// Modules through which users enter, and the folders that serve them.
const DOORS: &[&str] = &[
    "builder", "closures", "control", "lease", "local", "pool", "scope", "setters", "shell",
];

/// Folders that know nothing of the doors.
const BELOW: &[&str] = &["ledger", "rt", "time", "tray"];

/// An edge between two folders, and the first place that makes it.
type Edges<'a> = BTreeMap<(&'a str, &'a str), String>;

pub(super) fn is_below_the_doors(path: &str) -> bool {
    is_core(path) && !is_test(path) && folder_of(path).is_some_and(|it| BELOW.contains(&it))
}

pub(super) fn uses_no_door(file: &File, tree: &[File]) -> Vec<Found> {
    let uses = uses(file, &re_exports(tree)).into_iter();
    uses.filter(|(_, module)| DOORS.contains(&module.as_str()))
        .map(|(line, module)| (line, format!("`crate::{module}`")))
        .collect()
}

/// One finding for each group of folders that use each other in a circle.
pub(super) fn have_no_cycle(_: &File, tree: &[File]) -> Vec<Found> {
    let edges = edges(tree);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for &(folder, _) in edges.keys() {
        let below = reachable(folder, &edges);
        if !below.contains(folder) || seen.contains(folder) {
            continue;
        }
        let in_cycle =
            |other: &str| below.contains(other) && reachable(other, &edges).contains(folder);
        let cycle = edges
            .iter()
            .filter(|((from, to), _)| in_cycle(from) && in_cycle(to));
        let shown: Vec<String> = cycle
            .map(|((from, to), place)| {
                seen.insert(*from);
                format!("{from} → {to} ({place})")
            })
            .collect();
        found.push((1, shown.join(", ")));
    }
    found
}

fn edges(tree: &[File]) -> Edges<'_> {
    let folders: BTreeSet<&str> = code_of(tree)
        .filter_map(|file| folder_of(&file.path))
        .collect();
    let re_exports = re_exports(tree);
    let mut edges = Edges::new();
    for file in code_of(tree) {
        let Some(from) = folder_of(&file.path) else {
            continue;
        };
        for (line, module) in uses(file, &re_exports) {
            if let Some(to) = folders.get(module.as_str()).filter(|to| **to != from) {
                let place = file.path.trim_start_matches(CORE);
                edges
                    .entry((from, to))
                    .or_insert_with(|| format!("{place}:{line}"));
            }
        }
    }
    edges
}

fn reachable<'a>(from: &str, edges: &Edges<'a>) -> BTreeSet<&'a str> {
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    loop {
        let step = edges
            .keys()
            .filter(|(start, _)| *start == from || reached.contains(start));
        let step: Vec<&str> = step.map(|(_, end)| *end).collect();
        let before = reached.len();
        reached.extend(step);
        if reached.len() == before {
            return reached;
        }
    }
}

fn code_of(tree: &[File]) -> impl Iterator<Item = &File> {
    tree.iter()
        .filter(|file| is_core(&file.path) && !is_test(&file.path))
}

/// The first folder below the core's source folder. The flat files have none.
fn folder_of(path: &str) -> Option<&str> {
    let (folder, _) = path.strip_prefix(CORE)?.split_once('/')?;
    Some(folder)
}

/// The names that the crate's first file re-exports, each with the module that it comes from.
fn re_exports(tree: &[File]) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let Some(root) = tree.iter().find(|file| is_core_root(&file.path)) else {
        return names;
    };
    let code = shipped_code(&root.text);
    for statement in code.split(';') {
        let Some((_, path)) = statement.split_once("use ") else {
            continue;
        };
        let path = path
            .trim_start_matches("crate::")
            .trim_start_matches("self::");
        let module = first_word(path);
        let rest = path[module.len()..].split(|letter| !is_word(letter));
        for name in rest.filter(|name| !name.is_empty()) {
            names.insert(name.to_owned(), module.to_owned());
        }
    }
    names
}

/// The modules of the crate that the code of a file names, each with its line.
fn uses(file: &File, re_exports: &BTreeMap<String, String>) -> Vec<(usize, String)> {
    let code = shipped_code(&file.text);
    let mut uses = Vec::new();
    for (at, rest) in paths_from_root(&code, depth_of(&file.path)) {
        for name in first_segments(rest) {
            let module = re_exports.get(name).map_or(name, String::as_str);
            uses.push((line_of(&code, at), module.to_owned()));
        }
    }
    uses
}

/// Each path that starts at the crate's root, without that start: `crate::…`, or as many `super::`
/// as lead there.
fn paths_from_root(code: &str, depth: usize) -> Vec<(usize, &str)> {
    let starts_word = |at: usize| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|letter| is_word(letter) || letter == ':')
    };
    let mut paths = Vec::new();
    for (at, root) in code.match_indices("crate::") {
        if starts_word(at) {
            paths.push((at, &code[at + root.len()..]));
        }
    }
    for (at, _) in code.match_indices("super::") {
        let rest = code[at..].trim_start_matches("super::");
        let steps = (code.len() - at - rest.len()) / "super::".len();
        if starts_word(at) && steps == depth + inline_modules_around(code, at) {
            paths.push((at, rest));
        }
    }
    paths
}

/// How many modules lie between the crate's root and the code of a file, its own included.
fn depth_of(path: &str) -> usize {
    let path = path.trim_start_matches(CORE).trim_end_matches(".rs");
    let path = path.trim_end_matches("/mod");
    path.split('/').filter(|part| *part != "lib").count()
}

fn inline_modules_around(code: &str, at: usize) -> usize {
    let modules = code[..at].match_indices("mod ").filter(|(start, mark)| {
        let rest = &code[start + mark.len()..];
        let name = first_word(rest);
        let block = rest[name.len()..].trim_start();
        let opened = code.len() - block.len();
        block.starts_with('{') && opened + end_of_block(block) > at
    });
    modules.count()
}

/// The first names of a path, or of each path in braces.
fn first_segments(path: &str) -> Vec<&str> {
    if !path.starts_with('{') {
        return vec![first_word(path)];
    }
    let inner = &path[1..end_of_block(path) - 1];
    let mut depth = 0_usize;
    let parts = inner.split(|letter| {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.map(|part| first_word(part.trim_start())).collect()
}
