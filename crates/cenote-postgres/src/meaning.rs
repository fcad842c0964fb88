//! The meaning of a text: what its statements may leave behind in the session.
//!
//! The rule is coarse, and errs on the safe side: a text that is not known to be harmless makes the
//! session dirty. A function on the server that changes the session is not noticed.

use std::ops::BitOr;

/// What may have to be undone before a session is lent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dirt(pub(crate) u8);

impl Dirt {
    pub(crate) const NONE: Self = Self(0);
    /// A transaction may be open.
    pub(crate) const TRANSACTION: Self = Self(1);
    /// Settings, temporary tables, cursors, subscriptions, locks.
    pub(crate) const STATE: Self = Self(2);
    /// Statements that SQL text prepared or forgot.
    pub(crate) const PREPARED: Self = Self(4);
    /// All of them.
    pub(crate) const ANY: Self = Self(7);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Dirt {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What a text does to the transaction of its session, if it succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Keeps,
    Opens,
    Ends,
}

/// What a text may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) dirt: Dirt,
    pub(crate) effect: Effect,
}

/// Statements with these first words leave nothing behind, unless a word in them does.
const HARMLESS: &[&str] = &[
    "select", "insert", "update", "delete", "merge", "values", "table", "with", "show", "explain",
    "truncate", "copy", "notify", "fetch", "move", "create", "alter", "drop", "comment", "grant",
    "revoke", "analyze", "vacuum", "reindex", "refresh",
];

/// The verbs of transactions.
const TRANSACTION: &[&str] = &[
    "begin",
    "start",
    "commit",
    "end",
    "rollback",
    "abort",
    "savepoint",
    "release",
];

/// `COMMIT AND CHAIN`, `ROLLBACK TO` and `COMMIT PREPARED` do not end the transaction.
const NOT_ENDING: &[&str] = &["chain", "to", "prepared"];

/// Verbs that prepare statements, or that forget those of the driver.
const PREPARED: &[&str] = &["prepare", "execute", "deallocate", "discard"];

/// Words that change the session inside of a harmless statement: functions that set something, take
/// a lock of the session or run the text of a query; an updatable view of the settings; and the
/// schema of temporary tables.
const CHANGING: &[&str] = &[
    "set_config",
    "setseed",
    "pg_settings",
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "pg_temp",
    "query_to_xml",
    "query_to_xmlschema",
    "query_to_xml_and_xmlschema",
    "dblink",
    "dblink_connect",
    "dblink_exec",
    "crosstab",
    "connectby",
    "xpath_table",
    "ts_stat",
    "ts_rewrite",
    "pg_replication_origin_session_setup",
];

impl Meaning {
    pub(crate) const HARMLESS: Self = Self::of(Dirt::NONE, Effect::Keeps);
    pub(crate) const UNKNOWN: Self = Self::of(Dirt::ANY, Effect::Keeps);
    pub(crate) const OPENS: Self = Self::of(Dirt::TRANSACTION, Effect::Opens);
    /// A statement about a savepoint.
    pub(crate) const IN_TRANSACTION: Self = Self::of(Dirt::TRANSACTION, Effect::Keeps);
    pub(crate) const ENDS: Self = Self::of(Dirt::TRANSACTION, Effect::Ends);

    const fn of(dirt: Dirt, effect: Effect) -> Self {
        Self { dirt, effect }
    }

    /// Reads a text that the server accepts only if it is one statement.
    pub(crate) fn of_one(sql: &str) -> Self {
        let first = first_word(sql);
        let first_is = |list: &[&str]| is_in(list, first);
        if first_is(HARMLESS) {
            let has = |list| words(sql).any(|word| is_in(list, word));
            let uses_data = first_is(&["insert", "update", "delete", "merge"]);
            let makes_table = !uses_data && has(&["create", "into"]);
            let temporary = makes_table && has(&["temp", "temporary"]);
            return match temporary || has(CHANGING) {
                true => Self::of(Dirt::STATE, Effect::Keeps),
                false => Self::HARMLESS,
            };
        }
        if first_is(&["begin", "start"]) {
            return Self::OPENS;
        }
        if first_is(TRANSACTION) {
            let ends = first_is(&["commit", "end", "rollback", "abort"])
                && !words(sql).any(|word| is_in(NOT_ENDING, word));
            return match ends {
                true => Self::ENDS,
                false => Self::IN_TRANSACTION,
            };
        }
        match first_is(PREPARED) {
            true => Self::of(Dirt::STATE | Dirt::PREPARED, Effect::Keeps),
            false if first.is_empty() => Self::HARMLESS,
            false => Self::of(Dirt::STATE, Effect::Keeps),
        }
    }

    /// Reads a text that may be several statements.
    pub(crate) fn of_batch(sql: &str) -> Self {
        let is_one = sql.trim_end().trim_end_matches(';').find(';').is_none();
        if is_one {
            return Self::of_one(sql);
        }
        let has = |list| words(sql).any(|word| is_in(list, word));
        let mut dirt = Dirt::STATE;
        if has(TRANSACTION) {
            dirt = dirt | Dirt::TRANSACTION;
        }
        if has(PREPARED) {
            dirt = dirt | Dirt::PREPARED;
        }
        Self::of(dirt, Effect::Keeps)
    }
}

/// Returns the first word, behind blanks, comments and brackets. Empty if there is none.
fn first_word(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(' || c == ';');
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if rest.starts_with("/*") {
            rest = behind_comment(rest);
        } else {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            // A text that begins with something else is not known.
            return match end == 0 && !rest.is_empty() {
                true => rest,
                false => &rest[..end],
            };
        }
    }
}

/// Comments can be nested.
fn behind_comment(sql: &str) -> &str {
    let (mut depth, mut at) = (0, 0);
    while let Some(pair) = sql.as_bytes().get(at..at + 2) {
        match pair {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return &sql[at..];
        }
    }
    ""
}

/// All words, also those in strings and comments.
fn words(sql: &str) -> impl Iterator<Item = &str> {
    sql.split(|c| !is_word(c)).filter(|word| !word.is_empty())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_in(list: &[&str], word: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests;
