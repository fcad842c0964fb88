//! What the text of a statement suggests about the session after it.
//!
//! A text is harmless only if it begins with a word of a short list. Nothing is known of quotes and
//! comments, so a text can look worse than it is, but not better.

use std::fmt::{self, Write};

use diesel::connection::DebugQuery;

/// Statements that begin so leave nothing behind in the session.
const HARMLESS: [&str; 17] = [
    "select", "insert", "update", "delete", "with", "values", "merge", "replace", "table", "show",
    "explain", "create", "alter", "drop", "truncate", "analyze", "copy",
];

const TRANSACTION: [&str; 8] = [
    "begin",
    "start",
    "commit",
    "end",
    "rollback",
    "abort",
    "savepoint",
    "release",
];

/// Functions that change the session, and the schema of temporary things.
const SESSION: [&str; 7] = [
    "set_config",
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "get_lock",
    "pg_temp",
];

/// What `DebugQuery` puts between the text and the values.
const VALUES: &str = " -- binds: ";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    #[default]
    Harmless,
    /// A transaction may be open.
    Transaction,
    /// Anything may have changed: settings, temporary tables, locks, a transaction.
    Session,
}

impl Mark {
    pub(crate) fn of_query(query: &dyn DebugQuery) -> Self {
        let mut reader = Reader::default();
        // The reader stops before the values, which can be long. That is its error.
        let _ = write!(reader, "{query}");
        reader.mark
    }

    pub(crate) fn of_text(sql: &str) -> Self {
        sql.split(';').map(Self::of_one).max().unwrap_or_default()
    }

    fn of_one(sql: &str) -> Self {
        let sql = sql.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
        if sql.is_empty() {
            return Self::Harmless;
        }
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '@');
        let mut words = sql.split(|c| !is_word(c)).filter(|word| !word.is_empty());
        let first = match words.next() {
            Some(first) if sql.starts_with(first) => first,
            _ => return Self::Session,
        };
        if one_of(&TRANSACTION, first) {
            return Self::Transaction;
        }
        if !one_of(&HARMLESS, first) || sql.contains(":=") {
            return Self::Session;
        }
        let creates = first.eq_ignore_ascii_case("create");
        let inserts = one_of(&["insert", "replace", "merge"], first);
        let mut after_into = false;
        for word in words {
            let is_temporary = one_of(&["temp", "temporary"], word);
            if one_of(&SESSION, word)
                || is_temporary && (creates || after_into && !inserts)
                || after_into && word.starts_with('@')
            {
                return Self::Session;
            }
            after_into = word.eq_ignore_ascii_case("into");
        }
        Self::Harmless
    }
}

fn one_of(list: &[&str], word: &str) -> bool {
    list.iter().any(|item| item.eq_ignore_ascii_case(word))
}

/// Reads the text of a query, which comes in one piece, and not its values.
#[derive(Default)]
struct Reader {
    mark: Mark,
    is_read: bool,
}

impl Write for Reader {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if !self.is_read {
            self.is_read = true;
            self.mark = Mark::of_text(text);
            return Ok(());
        }
        if text != VALUES {
            self.mark = Mark::Session; // another version of diesel writes in other pieces
        }
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests;
