//! How wide the lines of code, comments and documents are.

use super::source::{Line, read};
use super::{File, Found, paths};

const MOST_COLUMNS: usize = 100;

/// Tables, addresses, code in documents and string literals may be wider.
pub(super) fn fits_the_page(file: &File, _: &[File]) -> Vec<Found> {
    let wide: Vec<usize> = if paths::is_rust(&file.path) {
        wide_lines_of_code(&file.text)
    } else {
        wide_lines_of_document(&file.text)
    };
    let lines: Vec<&str> = file.text.lines().collect();
    wide.into_iter()
        .map(|index| (index + 1, format!("{} columns", columns(lines[index]))))
        .collect()
}

fn wide_lines_of_code(text: &str) -> Vec<usize> {
    let mut in_example = false;
    let mut wide = Vec::new();
    for (index, (whole, line)) in text.lines().zip(read(text)).enumerate() {
        in_example ^= line.comment.trim_start().starts_with("```");
        if is_wide(whole) && !may_be_wide(&line, in_example) {
            wide.push(index);
        }
    }
    wide
}

/// rustfmt breaks no string, neither in code nor in the examples of a comment.
fn may_be_wide(line: &Line, in_example: bool) -> bool {
    let table = line.comment.trim_start().starts_with('|');
    line.has_string || table || in_example && line.comment.contains('"')
}

fn wide_lines_of_document(text: &str) -> Vec<usize> {
    let mut in_code = false;
    let mut wide = Vec::new();
    for (index, line) in text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        if is_wide(line) && !in_code && !line.trim_start().starts_with('|') {
            wide.push(index);
        }
    }
    wide
}

fn is_wide(line: &str) -> bool {
    columns(line) > MOST_COLUMNS && !line.contains("://")
}

fn columns(line: &str) -> usize {
    line.chars().count()
}
