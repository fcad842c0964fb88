//! `cargo xtask tidy`: looks for broken absences and stale claims. The rules are in `rules`.

mod core;
mod dependencies;
mod documents;
mod folders;
mod paths;
mod prose;
mod registry;
mod rules;
mod source;
#[cfg(test)]
mod tests;
mod walks;
mod words;

use std::fs;
use std::io;
use std::process::Command;

use crate::command::Outcome;
use crate::manifest::split_comment;

use rules::{Look, RULES, Rule};

/// A file of the tree, by its path from the root. A file that is not text has an empty text.
struct File {
    path: String,
    text: String,
}

/// A line, counted from one, and what tidy saw there.
type Found = (usize, String);

pub(crate) fn run() -> Outcome {
    let tree = read_tree()
        .map_err(|error| format!("cannot read the tree ({error}); rerun: cargo xtask tidy"))?;
    let mut broken = Vec::new();
    for rule in RULES {
        let findings = check(rule, &tree);
        for finding in &findings {
            println!("{finding}");
        }
        if !findings.is_empty() {
            broken.push(format!("{} × {}", findings.len(), rule.name));
        }
    }
    println!("{}", core::Size::of(&tree));
    if !broken.is_empty() {
        let counts = broken.join(", ");
        return Err(format!("{counts}; rerun: cargo xtask tidy"));
    }
    println!("{} rules hold in {} files", RULES.len(), tree.len());
    Ok(())
}

/// The findings of a rule, one line each: `file:line: rule: what tidy saw: why it matters`.
fn check(rule: &Rule, tree: &[File]) -> Vec<String> {
    let Rule { name, why, .. } = rule;
    let files: Vec<&File> = tree.iter().filter(|file| (rule.at)(&file.path)).collect();
    if files.is_empty() {
        // A rule that reads nothing guards nothing: its file is missing or has moved.
        return vec![format!(
            "xtask/src/tidy/rules.rs:1: {name}: no file to read: {why}"
        )];
    }
    let mut findings = Vec::new();
    for file in files {
        for (line, seen) in look(&rule.look, file, tree) {
            findings.push(format!("{}:{line}: {name}: {seen}: {why}", file.path));
        }
    }
    findings
}

fn look(look: &Look, file: &File, tree: &[File]) -> Vec<Found> {
    let text = file.text.as_str();
    match look {
        Look::CodeLacks(needles) => seen_in(text, needles, |line| split_comment(line, "//").0),
        Look::CodeLacksWords(words) => words::seen_in_code(text, words),
        Look::Lacks(needles) => seen_in(text, needles, |line| line),
        Look::Has(needles) => {
            let missing = needles.iter().filter(|needle| !text.contains(*needle));
            missing
                .map(|needle| (1, format!("no `{needle}`")))
                .collect()
        }
        Look::AtMost(limit) => match text.lines().count() {
            count if count > *limit => vec![(limit + 1, format!("{count} lines, at most {limit}"))],
            _ => Vec::new(),
        },
        Look::Asks(ask) => ask(file, tree),
    }
}

fn seen_in(text: &str, needles: &[&str], part: fn(&str) -> &str) -> Vec<Found> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let seen = needles.iter().filter(|needle| part(line).contains(*needle));
        found.extend(seen.map(|needle| (index + 1, format!("`{needle}`"))));
    }
    found
}

fn found_unless(good: bool, line: usize, seen: &str) -> Vec<Found> {
    if good {
        Vec::new()
    } else {
        vec![(line, seen.to_owned())]
    }
}

/// All files that git tracks or would track. A file deleted but not yet staged is not in the tree.
fn read_tree() -> io::Result<Vec<File>> {
    let args = "ls-files -z --cached --others --exclude-standard";
    let listing = Command::new("git").args(args.split(' ')).output()?;
    if !listing.status.success() {
        let said = String::from_utf8_lossy(&listing.stderr);
        return Err(io::Error::other(said.trim().to_owned()));
    }
    let mut tree = Vec::new();
    for path in String::from_utf8_lossy(&listing.stdout).split_terminator('\0') {
        if let Ok(bytes) = fs::read(path) {
            let text = String::from_utf8(bytes).unwrap_or_default();
            let path = path.to_owned();
            tree.push(File { path, text });
        }
    }
    Ok(tree)
}
