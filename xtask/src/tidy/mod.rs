//! `cargo xtask tidy`: looks for broken absences and stale claims. The rules are data, in `rules`.

mod rules;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::process::Command;

use crate::command::Outcome;
use crate::manifest::split_comment;

use rules::{Look, RULES, Rule};

/// A file of the tree, by its path from the root. What is not text has an empty text.
struct File {
    path: String,
    text: String,
}

/// A line, counted from one, and what was seen there.
type Found = (usize, String);

pub(crate) fn run() -> Outcome {
    let tree = read_tree()
        .map_err(|error| format!("cannot read the tree ({error}); rerun: cargo xtask tidy"))?;
    let findings: Vec<String> = RULES.iter().flat_map(|rule| check(rule, &tree)).collect();
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        let count = findings.len();
        return Err(format!("{count} findings; rerun: cargo xtask tidy"));
    }
    println!("{} rules hold in {} files", RULES.len(), tree.len());
    Ok(())
}

/// What the rule has to say about the tree, one line each: `file:line: rule: what was seen: why it matters`.
fn check(rule: &Rule, tree: &[File]) -> Vec<String> {
    let Rule { name, why, .. } = rule;
    let files: Vec<&File> = tree.iter().filter(|file| (rule.at)(&file.path)).collect();
    if files.is_empty() {
        // A rule that reads nothing guards nothing: the file it was made for is missing or has moved.
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

/// All that git tracks or would track. A file deleted but not yet staged is not in the tree.
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
