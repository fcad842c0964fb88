//! Names that the code defines, read from its text: variants, events, log lines, metrics.

use std::fs;
use std::path::{Path, PathBuf};

/// A path from the root of the repository.
pub(crate) fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The text of a file of the repository.
pub(crate) fn read(path: &str) -> String {
    let file = root(path);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The variants of a public enum, in their order.
pub(crate) fn variants(path: &str, name: &str) -> Vec<String> {
    let text = read(path);
    let body = between(&text, &format!("pub enum {name}"), "\n}");
    let lines = body.lines().filter(|line| indent(line) == 4);
    let names = lines.filter_map(|line| word(line.trim_start(), char::is_uppercase));
    let names: Vec<String> = names.collect();
    assert!(names.len() > 1, "{path} has no enum `{name}`");
    names
}

/// The methods of an observer: one for each event.
pub(crate) fn events() -> Vec<String> {
    let text = read("crates/cenote/src/event.rs");
    let body = between(&text, "\nevents! {", "\n}");
    let heads = body.lines().filter(|line| indent(line) == 4);
    let heads = heads.filter(|line| line.contains(": ") && line.contains('{'));
    heads
        .filter_map(|line| word(line.trim_start(), char::is_lowercase))
        .collect()
}

/// The fixed beginning of each line that the pool can log.
pub(crate) fn log_lines() -> Vec<String> {
    let text = read("crates/cenote/src/log/lines.rs");
    let mut heads = Vec::new();
    for level in ["warn!(", "info!(", "debug!("] {
        for (at, _) in text.match_indices(level) {
            let rest = &text[at..];
            let end = [");", ")\n"].iter().filter_map(|end| rest.find(end)).min();
            let call = &rest[..end.unwrap_or(rest.len())];
            let message = call.rsplit('"').nth(1).unwrap_or_default();
            heads.extend(fixed_part(message));
        }
    }
    assert!(heads.len() > 10, "the log was moved: {heads:?}");
    heads
}

/// The text before the first colon, comma or value; else the text after the last value.
pub(crate) fn fixed_part(message: &str) -> Option<String> {
    let head = message.split(['{', ':', ',']).next().unwrap_or_default();
    let tail = message.rsplit('}').next().unwrap_or_default();
    let parts = [head.trim(), tail.trim()];
    let fixed = parts.into_iter().find(|part| !part.is_empty())?;
    Some(fixed.to_owned())
}

/// The string literals of a file that begin with one of these.
pub(crate) fn literals(path: &str, begins: &[&str]) -> Vec<String> {
    let text = read(path);
    let literals = text.split('"').skip(1).step_by(2);
    let wanted = literals.filter(|it| begins.iter().any(|begin| it.starts_with(begin)));
    wanted.map(str::to_owned).collect()
}

pub(crate) fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap_or_default();
    rest.split_once(end).map_or(rest, |(inside, _)| inside)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The first word of a line, if it begins like this.
fn word(line: &str, begins: fn(char) -> bool) -> Option<String> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let word: String = line.chars().take_while(|letter| is_part(*letter)).collect();
    word.starts_with(begins).then_some(word)
}
