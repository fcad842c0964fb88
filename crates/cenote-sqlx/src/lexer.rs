//! The lexer: splits the text of SQL into tokens, by the rules of each database.
//!
//! Comments and white space are skipped. Text that has no end (a quote or a comment) goes to the
//! end of the input, as the databases read it before they refuse it. The rules are those of the
//! default settings (`standard_conforming_strings` on; neither `ANSI_QUOTES` nor
//! `NO_BACKSLASH_ESCAPES` in `sql_mode`).

use crate::name::Name;

/// The language of a database.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
    /// SQLite.
    Sqlite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or a name.
    Word,
    /// A name in quotes.
    Quoted,
    /// A string.
    Text,
    Number,
    /// One byte of punctuation.
    Symbol(u8),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    /// The characters of the token, with quotes and prefix.
    pub(crate) span: &'a str,
}

impl Token<'_> {
    /// Returns the word or the name in lower case, without quotes and escapes. It is empty for
    /// other tokens and for long names, which are no keywords.
    pub(crate) fn name(&self) -> Name {
        match self.kind {
            Kind::Word => Name::plain(self.span),
            Kind::Quoted => Name::quoted(self.span),
            Kind::Text | Kind::Number | Kind::Symbol(_) => Name::default(),
        }
    }

    pub(crate) fn is(&self, symbol: u8) -> bool {
        self.kind == Kind::Symbol(symbol)
    }
}

/// The tokens of a text.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    language: Language,
    text: &'a str,
    at: usize,
    /// Whether comments that MySQL executes (`/*! .. */`) are read as code.
    executes: bool,
    /// Whether such a comment is open.
    executing: bool,
    /// Whether there was such a comment.
    pub(crate) conditional: bool,
}

impl<'a> Lexer<'a> {
    /// Reads comments that MySQL executes as code.
    pub(crate) fn new(language: Language, text: &'a str) -> Self {
        Self {
            language,
            text,
            at: 0,
            executes: true,
            executing: false,
            conditional: false,
        }
    }

    /// Skips comments that MySQL executes, as a server of another version does.
    pub(crate) fn without_conditional(language: Language, text: &'a str) -> Self {
        Self {
            executes: false,
            ..Self::new(language, text)
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        let byte = self.text.as_bytes().get(self.at + ahead);
        byte.copied().unwrap_or_default()
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Moves behind the next `byte`, or to the end.
    fn skip_past(&mut self, byte: u8) {
        let found = self.rest().iter().position(|&other| other == byte);
        self.at = found.map_or(self.text.len(), |offset| self.at + offset + 1);
    }

    fn skip_while(&mut self, accepts: impl Fn(u8) -> bool) {
        let ends = self.rest().iter().position(|&byte| !accepts(byte));
        self.at = ends.map_or(self.text.len(), |offset| self.at + offset);
    }

    /// Skips a comment or white space. Returns whether there was any.
    fn skip_blank(&mut self) -> bool {
        let mysql = self.language == Language::MySql;
        match (self.peek(0), self.peek(1)) {
            (b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, _) => self.at += 1,
            // MySQL wants white space, a control character or the end after the dashes.
            (b'-', b'-') if !mysql || self.peek(2) <= b' ' || self.peek(2) == 0x7f => {
                self.skip_line();
            }
            (b'#', _) if mysql => self.skip_line(),
            (b'/', b'*') => self.skip_comment(),
            (b'*', b'/') if self.executing => {
                self.executing = false;
                self.at += 2;
            }
            _ => return false,
        }
        true
    }

    fn skip_line(&mut self) {
        let ends = |byte| byte == b'\n' || self.language == Language::Postgres && byte == b'\r';
        let found = self.rest().iter().position(|&byte| ends(byte));
        self.at = found.map_or(self.text.len(), |offset| self.at + offset + 1);
    }

    fn skip_comment(&mut self) {
        let executable = match self.rest() {
            _ if self.language != Language::MySql => 0,
            [_, _, b'!', ..] => 3,
            [_, _, b'M', b'!', ..] => 4,
            _ => 0,
        };
        if executable > 0 {
            self.conditional = true;
            if self.executes {
                self.at += executable;
                self.skip_while(|byte| byte.is_ascii_digit());
                self.executing = true;
                return;
            }
        }
        // A comment inside one that is executed ends alone. In PostgreSQL comments nest.
        let nests = self.language == Language::Postgres || executable > 0;
        let mut depth = 0_usize;
        while self.at < self.text.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') if depth == 0 || nests => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// Moves behind a quoted part that begins here. The quote is doubled inside, or `escapes` with
    /// a backslash.
    fn skip_quoted(&mut self, escapes: bool) {
        let quote = self.peek(0);
        self.at += 1;
        while self.at < self.text.len() {
            let byte = self.peek(0);
            self.at += 1;
            if byte == b'\\' && escapes {
                self.at += 1;
            } else if byte == quote {
                if self.peek(0) != quote {
                    return;
                }
                self.at += 1;
            }
        }
        self.at = self.text.len();
    }

    /// Moves behind a dollar quote. Returns false if there is none here.
    fn skip_dollar_quoted(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let Some(end) = rest[1..].find('$') else {
            return false;
        };
        let tag = &rest[..end + 2];
        let label = &tag[1..=end];
        let labels = label.bytes().all(is_letter_or_digit);
        if !labels || label.starts_with(|letter: char| letter.is_ascii_digit()) {
            return false;
        }
        let closes = rest[tag.len()..].find(tag);
        self.at += closes.map_or(rest.len(), |offset| offset + 2 * tag.len());
        true
    }

    /// Reads a word, or the string that its letters are the prefix of.
    fn word(&mut self) -> Kind {
        let begin = self.at;
        self.skip_while(|byte| is_letter_or_digit(byte) || byte == b'$');
        if self.language != Language::Postgres {
            return Kind::Word;
        }
        let prefix = &self.text.as_bytes()[begin..self.at];
        match (prefix, self.peek(0), self.peek(1)) {
            (b"e" | b"E", b'\'', _) => self.skip_quoted(true),
            (b"b" | b"B" | b"x" | b"X" | b"n" | b"N", b'\'', _) => self.skip_quoted(false),
            (b"u" | b"U", b'&', quote @ (b'\'' | b'"')) => {
                self.at += 1;
                self.skip_quoted(false);
                if quote == b'"' {
                    return Kind::Quoted;
                }
            }
            _ => return Kind::Word,
        }
        Kind::Text
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        while self.at < self.text.len() && self.skip_blank() {}
        // A backslash at the end of a string must not lead behind the text.
        self.at = self.at.min(self.text.len());
        let begin = self.at;
        if begin == self.text.len() {
            return None;
        }
        let kind = match (self.peek(0), self.language) {
            (b'\'', language) => {
                self.skip_quoted(language == Language::MySql);
                Kind::Text
            }
            (b'"', Language::MySql) => {
                self.skip_quoted(true);
                Kind::Text
            }
            (b'"', _) | (b'`', Language::MySql | Language::Sqlite) => {
                self.skip_quoted(false);
                Kind::Quoted
            }
            (b'[', Language::Sqlite) => {
                self.skip_past(b']');
                Kind::Quoted
            }
            (b'$', Language::Postgres) if self.skip_dollar_quoted() => Kind::Text,
            (byte, language) if byte.is_ascii_digit() => {
                self.skip_while(|byte| byte.is_ascii_digit() || byte == b'.');
                // A name of MySQL may begin with digits.
                match language == Language::MySql && is_letter_or_digit(self.peek(0)) {
                    true => self.word(),
                    false => Kind::Number,
                }
            }
            (byte, _) if is_letter_or_digit(byte) => self.word(),
            (byte, _) => {
                self.at += 1;
                Kind::Symbol(byte)
            }
        };
        // The end is between two characters: each branch ends at an ASCII byte or at the end.
        self.at = self.text.ceil_char_boundary(self.at);
        let span = &self.text[begin..self.at];
        Some(Token { kind, span })
    }
}

/// Every byte outside of ASCII is a letter, as in the databases.
fn is_letter_or_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

#[cfg(test)]
mod tests;
