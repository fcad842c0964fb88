//! `cenote doctor --from`: the lines of code that a migration from another pool must touch.
//!
//! The rules look for words in the text of a line. So a line may be named that does not matter, and
//! a call that is hidden behind a macro is not found. The compiler finds the rest.

mod rules;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::args::From;
use crate::failure::{Failure, Verdict};
use crate::out::{self, Colour};

/// A line that must be touched.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Site {
    file: PathBuf,
    line: usize,
    code: String,
    instead: &'static str,
}

pub(super) fn run(from: From, place: &Path, json: bool) -> Result<Verdict, Failure> {
    let mut files = Vec::new();
    collect(place, &mut files).map_err(|error| {
        let place = place.display();
        Failure::from(format!(
            "cannot read `{place}`: {error}; name a folder or a file of source code"
        ))
    })?;
    files.sort();
    let mut sites = Vec::new();
    for file in files {
        // A file that is not text has no call sites.
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        sites.extend(scan(from, &file, &text));
    }
    if json {
        out::print_json(&sites)?;
    } else {
        out::print(&show(&sites))?;
    }
    Ok(match sites.is_empty() {
        true => Verdict::Fine,
        false => Verdict::Findings,
    })
}

/// Finds files of Rust and manifests, but nothing in `target` or in hidden folders.
fn collect(place: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if place.is_file() {
        files.push(place.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        // A link may lead back to a folder above it.
        if path.is_symlink() || name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else if name.ends_with(".rs") || name == "Cargo.toml" {
            files.push(path);
        }
    }
    Ok(())
}

fn scan(from: From, file: &Path, text: &str) -> Vec<Site> {
    let is_manifest = file.file_name().is_some_and(|name| name == "Cargo.toml");
    let rules = rules::of(from, is_manifest);
    let mut sites = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = line.trim();
        if code.starts_with("//") || is_manifest && code.starts_with('#') {
            continue;
        }
        let rule = rules.iter().find(|rule| rules::matches(code, rule.words));
        sites.extend(rule.map(|rule| Site {
            file: file.to_owned(),
            line: index + 1,
            code: code.to_owned(),
            instead: rule.instead,
        }));
    }
    sites
}

fn show(sites: &[Site]) -> String {
    let paint = out::paint();
    let mut text = String::new();
    for site in sites {
        let place = format!("{}:{}", site.file.display(), site.line);
        text += &format!(
            "{}  {}\n    instead: {}\n",
            paint.say(Colour::Bold, &place),
            site.code,
            site.instead
        );
    }
    text += &format!("{} lines to touch\n", sites.len());
    text
}

#[cfg(test)]
mod tests;
