//! The differences between two listings, and which of them break code that was written before.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Lines by place: the item, and the implementation if it is in one.
type Lines<'a> = BTreeMap<String, BTreeSet<&'a str>>;

/// The lines that are gone and new, by place.
pub(super) struct Changes<'a> {
    gone: Lines<'a>,
    breaking: Lines<'a>,
    new: Lines<'a>,
    /// The rustdoc that wrote the older listing.
    older: &'a str,
}

/// The first line of a listing.
pub(super) fn head(name: &str, rustdoc: &str) -> String {
    format!("# The public API of {name}, by rustdoc {rustdoc}: `cargo xtask api --write`")
}

impl<'a> Changes<'a> {
    pub(super) fn between(before: &'a str, after: &'a str) -> Self {
        let (old, current) = (lines(before), lines(after));
        let (mut breaking, mut new) = (Lines::new(), Lines::new());
        for (place, line) in missing(&current, &old) {
            let side = if breaks(&place, line, &old) {
                &mut breaking
            } else {
                &mut new
            };
            side.entry(place).or_default().insert(line);
        }
        let mut gone = Lines::new();
        for (place, line) in missing(&old, &current) {
            gone.entry(place).or_default().insert(line);
        }
        let older = before.split_once("by rustdoc ").map(|(_, rest)| rest);
        Self {
            gone,
            breaking,
            new,
            older: older
                .and_then(|rest| rest.split(':').next())
                .unwrap_or_default(),
        }
    }

    pub(super) fn breaking(&self) -> usize {
        count(&self.gone) + count(&self.breaking)
    }

    pub(super) fn additions(&self) -> usize {
        count(&self.new)
    }

    /// Nothing for listings that are equal.
    pub(super) fn report(&self, name: &str, rustdoc: &str) -> String {
        let mut text = String::new();
        if self.breaking() + self.additions() == 0 {
            return text;
        }
        let (breaking, additions) = (self.breaking(), self.additions());
        let _ = writeln!(text, "{name}: {breaking} breaking, {additions} added");
        if self.older != rustdoc && !self.older.is_empty() {
            let older = self.older;
            let _ = writeln!(
                text,
                "  rustdoc {older} wrote the listing, and this is {rustdoc}: a line may differ in its form alone"
            );
        }
        let places: BTreeSet<&String> = [&self.gone, &self.breaking, &self.new]
            .into_iter()
            .flat_map(BTreeMap::keys)
            .collect();
        for place in places {
            let _ = writeln!(text, "  {place}");
            let marked = [
                (&self.gone, "- breaking "),
                (&self.breaking, "+ breaking "),
                (&self.new, "+ addition "),
            ];
            for (lines, mark) in marked {
                for line in lines.get(place).into_iter().flatten() {
                    let _ = writeln!(text, "    {mark}{line}");
                }
            }
        }
        text
    }
}

/// The lines of a listing by place. An item is a place, and so is an implementation of it.
fn lines(listing: &str) -> Lines<'_> {
    let mut lines = Lines::new();
    let (mut item, mut place) = ("", String::new());
    for line in listing.lines().filter(|line| !line.starts_with('#')) {
        let text = line.trim_start();
        match line.len() - text.len() {
            0 => {
                item = text;
                lines.entry(item.to_owned()).or_default();
            }
            4 => {
                lines.entry(item.to_owned()).or_default().insert(text);
                if text.starts_with("impl") {
                    place = format!("{item} > {text}");
                    lines.entry(place.clone()).or_default();
                }
            }
            _ => {
                lines.entry(place.clone()).or_default().insert(text);
            }
        }
    }
    lines
}

/// The lines of one listing that are not in the other. For a place that is not in the other, one
/// line stands for all: that of the item, or the head of the implementation in its item.
fn missing<'a>(from: &Lines<'a>, other: &Lines<'a>) -> Vec<(String, &'a str)> {
    let mut missing = Vec::new();
    for (place, lines) in from {
        if let Some(there) = other.get(place) {
            let absent = lines.difference(there);
            missing.extend(absent.map(|line| (place.clone(), *line)));
        } else if !place.contains(" > ") {
            missing.push((place.clone(), "the whole item"));
        }
    }
    missing
}

/// Returns whether a new line of an item that was there breaks its users: an item that a trait
/// requires, or a variant or field where code could name them all.
fn breaks(place: &str, line: &str, old: &Lines<'_>) -> bool {
    let is_member = !place.contains(" > ") && !line.starts_with("impl");
    let Some(lines) = old.get(place).filter(|_| is_member) else {
        return false;
    };
    let is_open = || {
        let marks = ["#[non_exhaustive]", "/* private fields */"];
        let mut lines = lines.iter();
        lines.any(|line| marks.iter().any(|mark| line.contains(mark)))
    };
    match place.split_once(' ') {
        Some(("trait", _)) => line.ends_with(';'),
        Some(("struct" | "enum" | "union", _)) => !is_open(),
        _ => false,
    }
}

fn count(lines: &Lines<'_>) -> usize {
    lines.values().map(BTreeSet::len).sum()
}
