//! The sections of ARCHITECTURE.md that follow one acquire through the files and explain the words.

use super::core::functions;
use super::paths::CORE;
use super::source::{is_word, shipped_code};
use super::{File, Found};

const WALKS: &str = "## One acquire, in the order of the files";

/// There is a walk for each of these, named in its title.
const TITLES: &[&str] = &["tray", "hand-over", "timeout", "failed open"];

const MOST_STEPS: usize = 10;

const GLOSSARY: &str = "## Words";

const MOST_WORDS: usize = 20;

/// A line of the document, counted from one, and its text.
type Place<'a> = (usize, &'a str);

/// A title in bold or with `###`, and the steps below it.
struct Walk<'a> {
    title: Place<'a>,
    steps: Vec<Step<'a>>,
}

/// An item of a list, with the lines that continue it.
type Step<'a> = Vec<Place<'a>>;

pub(super) fn are_true(file: &File, tree: &[File]) -> Vec<Found> {
    let Some(section) = section(&file.text, WALKS) else {
        return vec![(1, format!("no section `{WALKS}`"))];
    };
    let mut found = Vec::new();
    let walks = walks(&section);
    for title in TITLES {
        let mut titles = walks.iter().map(|walk| walk.title.1.to_lowercase());
        if !titles.any(|it| it.contains(title)) {
            let line = section[0].0;
            found.push((line, format!("no walk has `{title}` in its title")));
        }
    }
    for walk in &walks {
        found.extend(check(walk, tree));
    }
    found
}

fn check(walk: &Walk<'_>, tree: &[File]) -> Vec<Found> {
    let (line, title) = walk.title;
    let mut found = Vec::new();
    if walk.steps.is_empty() || walk.steps.len() > MOST_STEPS {
        let count = walk.steps.len();
        let seen = format!("`{title}` has {count} steps: one to {MOST_STEPS}, in a list");
        found.push((line, seen));
    }
    for step in &walk.steps {
        let named = step.iter().flat_map(|(line, text)| {
            let named = quoted(text).filter_map(file_and_function);
            named.map(|(file, function)| (*line, file, function))
        });
        let named: Vec<(usize, &str, &str)> = named.collect();
        if named.is_empty() {
            found.push((step[0].0, "a step without `file::function`".to_owned()));
        }
        let stale = named
            .into_iter()
            .filter(|(_, file, function)| !exists(tree, file, function));
        found.extend(stale.map(|(line, file, function)| {
            (line, format!("`{file}::{function}` is not in the core"))
        }));
    }
    found
}

fn walks<'a>(section: &[Place<'a>]) -> Vec<Walk<'a>> {
    let mut walks: Vec<Walk<'a>> = Vec::new();
    for &(line, text) in section {
        if let Some(title) = title(text) {
            walks.push(Walk {
                title: (line, title),
                steps: Vec::new(),
            });
        } else if let Some(walk) = walks.last_mut() {
            if is_list_item(text) {
                walk.steps.push(vec![(line, text)]);
            } else if let Some(step) = walk.steps.last_mut() {
                step.push((line, text));
            }
        }
    }
    walks
}

fn title(line: &str) -> Option<&str> {
    if let Some(title) = line.strip_prefix("### ") {
        return Some(title.trim());
    }
    line.strip_prefix("**")?.split("**").next()
}

fn is_list_item(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let numbered = number.len() < line.len() && number.starts_with(". ");
    numbered || line.starts_with("- ") || line.starts_with("* ")
}

/// `ledger/request::request` has the file `ledger/request` and the function `request`.
fn file_and_function(quoted: &str) -> Option<(&str, &str)> {
    let (file, function) = quoted.rsplit_once("::")?;
    let is_path = |letter: char| letter.is_ascii_lowercase() || "_/".contains(letter);
    let is_place = file.chars().all(is_path) && !function.is_empty();
    (is_place && function.chars().all(is_word)).then_some((file, function))
}

/// A folder stands for its `mod.rs`.
fn exists(tree: &[File], file: &str, function: &str) -> bool {
    let paths = [format!("{CORE}{file}.rs"), format!("{CORE}{file}/mod.rs")];
    let mut files = tree.iter().filter(|it| paths.contains(&it.path));
    files.any(|file| functions(&shipped_code(&file.text)).any(|it| it == function))
}

/// Counts the words of a list or of a table's first column. Several words in one place are divided
/// by commas.
pub(super) fn words_are_few(file: &File, _: &[File]) -> Vec<Found> {
    let Some(section) = section(&file.text, GLOSSARY) else {
        return vec![(1, format!("no section `{GLOSSARY}`"))];
    };
    let terms = section.iter().filter_map(|(_, line)| term(line));
    // The first row of a table is its head.
    let head = usize::from(section.iter().any(|(_, line)| is_rule(line)));
    let terms = terms.skip(head);
    let count = terms.map(|term| term.split(',').count()).sum::<usize>();
    if (1..=MOST_WORDS).contains(&count) {
        return Vec::new();
    }
    let seen = format!("{count} words: one to {MOST_WORDS}, in a table or a list");
    vec![(section[0].0, seen)]
}

/// The word that a row or a list item explains.
fn term(line: &str) -> Option<&str> {
    if let Some(row) = line.strip_prefix('|') {
        return (!is_rule(line)).then(|| row.split('|').next()).flatten();
    }
    is_list_item(line).then(|| line.split(':').next()).flatten()
}

/// Whether this is the line between the head of a table and its rows.
fn is_rule(line: &str) -> bool {
    line.starts_with('|') && line.chars().all(|letter| "|-: ".contains(letter))
}

/// The lines of a section, its heading first.
fn section<'a>(text: &'a str, heading: &str) -> Option<Vec<Place<'a>>> {
    let mut lines = text
        .lines()
        .enumerate()
        .skip_while(|(_, line)| *line != heading);
    let first = lines.next()?;
    let rest = lines.take_while(|(_, line)| !line.starts_with("## "));
    let lines = std::iter::once(first).chain(rest);
    Some(lines.map(|(index, line)| (index + 1, line)).collect())
}

/// The pieces between back-quotes.
pub(super) fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}
