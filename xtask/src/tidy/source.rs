//! Rust source as tidy reads it: the code of each line, its comment, and whether it is a test.
//! Not a parser: it knows comments, literals, brackets and `cfg` attributes.

/// One line of a Rust file.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The line without its comment. String and character literals are empty.
    pub(super) code: String,
    /// The comment without its slashes.
    pub(super) comment: String,
    /// Whether a string literal begins, ends or continues on this line.
    pub(super) has_string: bool,
    /// Whether the line belongs to an item that is compiled for tests only.
    pub(super) is_test: bool,
}

impl Line {
    pub(super) fn has_code(&self) -> bool {
        self.has_string || !self.code.trim().is_empty()
    }
}

/// What the next character of a file belongs to.
enum Inside {
    Code,
    /// A block comment, and how deep it is nested.
    Comment(usize),
    /// A string literal. `Some` is a raw one, with the number of its `#`.
    Text(Option<usize>),
}

pub(super) fn read(text: &str) -> Vec<Line> {
    let mut inside = Inside::Code;
    let mut lines: Vec<Line> = text.lines().map(|line| inside.read(line)).collect();
    mark_tests(&mut lines);
    lines
}

/// The code outside tests, with the line breaks of the file.
pub(super) fn shipped_code(text: &str) -> String {
    let mut code = String::new();
    for line in read(text) {
        if !line.is_test {
            code.push_str(&line.code);
        }
        code.push('\n');
    }
    code
}

/// The line, counted from one, of a place in a text.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The identifier that a text starts with; it may be empty.
pub(super) fn first_word(text: &str) -> &str {
    let end = text.find(|letter: char| !is_word(letter));
    &text[..end.unwrap_or(text.len())]
}

pub(super) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

impl Inside {
    fn read(&mut self, line: &str) -> Line {
        let mut read = Line {
            has_string: matches!(self, Self::Text(_)),
            ..Line::default()
        };
        let mut rest = line;
        while let Some(letter) = rest.chars().next() {
            let length = match *self {
                Self::Code if rest.starts_with("//") => {
                    read.comment.push_str(rest.trim_start_matches(['/', '!']));
                    break;
                }
                Self::Code => self.read_code(rest, letter, &mut read),
                Self::Comment(depth) => {
                    let (length, depth) = match rest {
                        _ if rest.starts_with("*/") => (2, depth - 1),
                        _ if rest.starts_with("/*") => (2, depth + 1),
                        _ => (letter.len_utf8(), depth),
                    };
                    read.comment.push(letter);
                    *self = if depth == 0 {
                        Self::Code
                    } else {
                        Self::Comment(depth)
                    };
                    length
                }
                Self::Text(None) if letter == '\\' => {
                    let escaped = rest.chars().nth(1);
                    1 + escaped.map_or(0, char::len_utf8)
                }
                Self::Text(hashes) => {
                    let end = format!("\"{}", "#".repeat(hashes.unwrap_or(0)));
                    if rest.starts_with(&end) {
                        read.code.push('"');
                        *self = Self::Code;
                        end.len()
                    } else {
                        letter.len_utf8()
                    }
                }
            };
            rest = &rest[length..];
        }
        read
    }

    /// Returns how many bytes it has read.
    fn read_code(&mut self, rest: &str, letter: char, line: &mut Line) -> usize {
        if rest.starts_with("/*") {
            *self = Self::Comment(1);
            return 2;
        }
        if letter == '\''
            && let Some(length) = character_literal(rest)
        {
            line.code.push_str("''");
            return length;
        }
        if letter == '"' {
            line.has_string = true;
            *self = Self::Text(raw_hashes(&line.code));
        }
        line.code.push(letter);
        letter.len_utf8()
    }
}

/// The length of the literal that starts here, unless it is a lifetime.
fn character_literal(rest: &str) -> Option<usize> {
    let mut letters = rest.char_indices().skip(1);
    let (_, first) = letters.next()?;
    if first == '\\' {
        letters.next()?;
        return letters
            .find(|(_, letter)| *letter == '\'')
            .map(|(at, _)| at + 1);
    }
    let (at, second) = letters.next()?;
    (second == '\'').then_some(at + 1)
}

/// `Some` if a quotation mark after this code opens a raw string.
fn raw_hashes(before: &str) -> Option<usize> {
    let prefix = before.trim_end_matches('#');
    let word = prefix.rsplit(|letter| !is_word(letter)).next()?;
    matches!(word, "r" | "br" | "cr").then_some(before.len() - prefix.len())
}

fn mark_tests(lines: &mut [Line]) {
    let code: Vec<&str> = lines.iter().map(|line| line.code.as_str()).collect();
    let code = code.join("\n");
    let mut ranges = Vec::new();
    for (at, mark) in code.match_indices("#[cfg(") {
        let start = at + mark.len() - 1;
        let end = start + end_of_block(&code[start..]);
        if is_for_tests(&code[start..end]) {
            let item = end + code[end..].find(']').map_or(0, |close| close + 1);
            let end = item + end_of_item(&code[item..]);
            ranges.push(line_of(&code, at)..=line_of(&code, end));
        }
    }
    for (index, line) in lines.iter_mut().enumerate() {
        line.is_test = ranges.iter().any(|range| range.contains(&(index + 1)));
    }
}

/// `(test)` and `(all(test, …))` are; `(any(test, …))` is not.
fn is_for_tests(condition: &str) -> bool {
    let condition = condition.trim_matches(['(', ')', ' ']);
    let all = condition.strip_prefix("all(").unwrap_or_default();
    condition == "test" || all.split(',').any(|part| part.trim() == "test")
}

/// Where the block that starts here ends, its last bracket included.
pub(super) fn end_of_block(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, letter) in code.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// Where the item, statement or field that starts here ends.
fn end_of_item(code: &str) -> usize {
    let ends_at_comma = !is_item(code);
    let mut depth = 0_usize;
    for (at, letter) in code.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        let ends = match letter {
            '}' | ';' => true,
            ',' => ends_at_comma,
            _ => false,
        };
        if ends && depth == 0 {
            return at;
        }
    }
    code.len()
}

fn is_item(code: &str) -> bool {
    let mut code = code.trim_start();
    while code.starts_with("#[") {
        code = code[1 + end_of_block(&code[1..])..].trim_start();
    }
    if let Some(public) = code.strip_prefix("pub") {
        code = public.trim_start();
        if code.starts_with('(') {
            code = code[end_of_block(code)..].trim_start();
        }
    }
    let items = [
        "async", "const", "enum", "fn", "impl", "mod", "static", "struct", "trait", "type", "use",
    ];
    items.contains(&first_word(code))
}
