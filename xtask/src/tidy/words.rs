//! Words that must not come back: names that the core gave up, and riddles in prose.

use super::Found;
use super::source::{is_word, read};
use super::{File, paths};

/// Names that the core has given up, in its code and in its comments. One with a capital is a name
/// of the code alone: `#[cold]` is fine, `Cold` is not.
const ABANDONED: &[&str] = &[
    "aside",
    "bell",
    "book",
    "fetched",
    "glance",
    "humane",
    "kept_up",
    "latch",
    "letter",
    "loan",
    "nearly_now",
    "parcel",
    "relay",
    "tags",
    "tick",
    "truly_now",
    "Cold",
    "Polite",
];

/// Subjects that do not say what acts, and a verb in place of `Returns`.
const RIDDLES: &[&str] = &[
    "anybody",
    "everybody",
    "nobody",
    "one who",
    "somebody",
    "those who",
    "whoever",
    "Answers with",
];

pub(super) fn are_current(file: &File, _: &[File]) -> Vec<Found> {
    let lines = file.text.lines().enumerate();
    lines
        .flat_map(|(index, line)| seen_in(line, index + 1, ABANDONED))
        .collect()
}

/// Reads the comments of code, and all of a document.
pub(super) fn are_plain(file: &File, _: &[File]) -> Vec<Found> {
    if !paths::is_rust(&file.path) {
        let lines = file.text.lines().enumerate();
        return lines
            .flat_map(|(index, line)| seen_in(line, index + 1, RIDDLES))
            .collect();
    }
    let lines = read(&file.text).into_iter().enumerate();
    lines
        .flat_map(|(index, line)| seen_in(&line.comment, index + 1, RIDDLES))
        .collect()
}

/// Finds names of code: `on_tokio` is another name than `tokio`.
pub(super) fn seen_in_code(text: &str, words: &[&str]) -> Vec<Found> {
    let mut found = Vec::new();
    for (index, line) in read(text).iter().enumerate() {
        let mut names = line.code.split(|letter| !is_word(letter));
        let seen = names.find(|name| words.contains(name));
        found.extend(seen.map(|name| (index + 1, format!("`{name}`"))));
    }
    found
}

fn seen_in(line: &str, number: usize, words: &[&str]) -> Vec<Found> {
    let seen = words.iter().filter(|word| has_word(line, word));
    seen.map(|word| (number, format!("`{word}`"))).collect()
}

/// Returns whether a line has a word, alone or in a name: `LoanEnd` and `end_of_loan` have `loan`,
/// `loaned` has not. A word with a capital is matched as it is, any other in any case.
fn has_word(line: &str, word: &str) -> bool {
    let exact = word.contains(char::is_uppercase);
    let lower = line.to_ascii_lowercase();
    let searched = if exact { line } else { &lower };
    let mut places = searched.match_indices(word);
    places.any(|(at, _)| is_border(line, at) && is_border(line, at + word.len()))
}

/// Returns whether a word may start or end here.
fn is_border(line: &str, at: usize) -> bool {
    let (before, after) = line.split_at(at);
    let within =
        before.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric);
    let hump = before.ends_with(char::is_lowercase) && after.starts_with(char::is_uppercase);
    hump || !within
}
