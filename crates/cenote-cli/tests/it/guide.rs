//! The commands that the guide shows exist, with their options.

use std::fs;
use std::path::Path;

use crate::{cenote, text};

/// Returns the lines of all chapters that show a command, from its name on.
fn shown() -> Vec<String> {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide");
    let mut lines = Vec::new();
    for chapter in fs::read_dir(guide).unwrap() {
        let path = chapter.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let chapter = fs::read_to_string(path).unwrap();
        for start in ["\ncenote ", "`cenote ", "--features full -- "] {
            let parts = chapter.split(start).skip(1);
            let ends = |part: &str| part.split(['\n', '`']).next().unwrap().to_owned();
            lines.extend(parts.map(ends));
        }
    }
    lines
}

#[test]
fn every_command_in_the_guide_exists_with_its_options() {
    let shown = shown();
    assert!(shown.len() > 5, "{shown:?}");

    for line in shown {
        let mut words = line.split_whitespace();
        let command = words.next().unwrap();
        let help = cenote(&[command, "--help"]);
        let help = text(&help.stdout);
        assert!(help.contains("Usage: cenote "), "no `cenote {line}`");
        for option in words.filter(|word| word.starts_with("--")) {
            assert!(help.contains(option), "no `{option}` in `cenote {line}`");
        }
    }
}
