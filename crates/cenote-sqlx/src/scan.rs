//! What the text of a statement says about the state that it leaves in its session.
//!
//! The text is not parsed: words count wherever they stand, in strings and comments too. A false
//! alarm costs a reset; an overlooked word would leak a lock. The effect of a function on the
//! server is not in the text: `Reset::Always` is for those.

use std::ops::{BitOr, BitOrAssign};

/// What may have to be undone before a session is lent again.
///
/// ```
/// use cenote_sqlx::Dirt;
///
/// let mut dirt = Dirt::STATE | Dirt::LOCKS;
/// assert!(dirt.has(Dirt::LOCKS) && !dirt.has(Dirt::TRANSACTION));
/// dirt |= Dirt::TRANSACTION | Dirt::PREPARED;
/// assert_eq!(dirt, Dirt::ANY);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirt(u8);

impl Dirt {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// A transaction may be open. The server is asked before the session is lent again.
    pub const TRANSACTION: Self = Self(1);
    /// Session state: settings, temporary tables, variables, cursors, subscriptions, another
    /// schema.
    pub const STATE: Self = Self(2);
    /// Locks that belong to the session.
    pub const LOCKS: Self = Self(4);
    /// Statements that `PREPARE` made.
    pub const PREPARED: Self = Self(8);
    /// All of them. The connection was used outside of this crate.
    pub const ANY: Self = Self(15);

    /// All but a transaction.
    pub(crate) const SESSION: Self = Self(Self::ANY.0 & !Self::TRANSACTION.0);

    /// Returns whether it has any part of `other`.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Dirt {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Dirt {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// One word of a statement, in lower case.
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    /// Whether a statement can begin with it.
    pub(crate) first: bool,
}

/// Longer words are no keywords.
const LONGEST_WORD: usize = 40;

/// Returns the union of what `judge` says about the words of `sql`.
pub(crate) fn words(sql: &str, mut judge: impl FnMut(Word<'_>) -> Dirt) -> Dirt {
    let bytes = sql.as_bytes();
    let mut dirt = Dirt::NONE;
    let mut first = true;
    // Whether the current line has a line comment. A statement can begin on the line after it.
    let mut commented = false;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if is_word(byte) {
            let begin = at;
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
            dirt |= ask(&sql[begin..at], first, &mut judge);
            first = false;
            continue;
        }
        let pair = (byte, bytes.get(at + 1).copied().unwrap_or_default());
        match pair {
            (b';', _) | (b'*', b'/') => first = true,
            (b'-', b'-') | (b'#', _) => commented = true,
            (b'\n' | b'\r', _) => {
                first |= commented;
                commented = false;
            }
            _ => {}
        }
        at += 1;
    }
    dirt
}

fn ask(word: &str, first: bool, judge: &mut impl FnMut(Word<'_>) -> Dirt) -> Dirt {
    let mut lower = [0; LONGEST_WORD];
    let Some(lower) = lower.get_mut(..word.len()) else {
        return Dirt::NONE;
    };
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    match str::from_utf8(lower) {
        Ok(text) => judge(Word { text, first }),
        Err(_) => Dirt::NONE,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Returns whether a transaction that SQL text began is open after `sql`, given whether one is
/// `open` before it. Decided by the verbs alone: text in quotes, in the body of a function and in a
/// `DO` is ignored.
pub(crate) fn open_after(sql: &str, mut open: bool) -> bool {
    let mut before = open;
    let mut verb = Verb::Other;
    let mut body = false;
    words(&without_quoted(sql), |word| {
        body |= is_body(&word);
        if body {
            return Dirt::NONE;
        }
        if word.first {
            before = open;
            verb = Verb::of(word.text);
            open = match verb {
                Verb::Begin => true,
                Verb::End => false,
                Verb::Start | Verb::Other => open,
            };
            return Dirt::NONE;
        }
        match (verb, word.text) {
            (Verb::Start, "transaction") => open = true,
            // These do not end the transaction: `ROLLBACK TO`, `COMMIT PREPARED`, `AND CHAIN`.
            // `BEGIN NOT ATOMIC` begins a block of code.
            (Verb::End, "to" | "prepared" | "chain") | (Verb::Begin, "atomic") => open = before,
            (Verb::End, "no") => verb = Verb::Other,
            _ => {}
        }
        Dirt::NONE
    });
    open
}

#[derive(Clone, Copy)]
enum Verb {
    Begin,
    Start,
    End,
    Other,
}

impl Verb {
    fn of(word: &str) -> Self {
        match word {
            "begin" => Self::Begin,
            "start" => Self::Start,
            "commit" | "end" | "rollback" | "abort" => Self::End,
            _ => Self::Other,
        }
    }
}

/// Returns the text without the parts in quotes.
fn without_quoted(sql: &str) -> String {
    let mut quote = None;
    sql.chars()
        .filter(|&letter| {
            let quoted = quote.is_some();
            if quote == Some(letter) {
                quote = None;
            } else if !quoted && matches!(letter, '\'' | '"' | '`') {
                quote = Some(letter);
            }
            !quoted
        })
        .collect()
}

fn is_body(word: &Word<'_>) -> bool {
    let names = ["function", "procedure", "trigger", "event"];
    word.first && word.text == "do" || names.contains(&word.text)
}

/// The length of a label, in characters.
const LABEL: usize = 120;

/// Returns the statement as a label: one line, cut off. Parameters are not part of the text.
pub(crate) fn label(sql: &str) -> String {
    let mut label = String::with_capacity(sql.len().min(LABEL) + 3);
    let mut taken = 0;
    for word in sql.split_whitespace() {
        if taken > 0 {
            label.push(' ');
        }
        for letter in word.chars() {
            if taken >= LABEL {
                label.truncate(label.trim_end().len());
                label.push('…');
                return label;
            }
            label.push(letter);
            taken += 1;
        }
        taken += 1;
    }
    label
}

#[cfg(test)]
mod tests;
