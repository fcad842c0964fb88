//! Readings that are remembered, so that a text is read once.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use crate::lexer::Language;
use crate::reading::Reading;

/// The texts that are remembered for each database. A program has fewer; one that makes up texts
/// begins again when they are too many.
const MOST: usize = 1024;

/// Longer texts are read each time: that costs less than to send them.
const LONGEST: usize = 4096;

type Known = RwLock<Option<HashMap<Box<str>, Reading>>>;

static KNOWN: [Known; 3] = [const { RwLock::new(None) }; 3];

/// Returns the reading of `sql`.
pub(crate) fn reading(language: Language, sql: &str) -> Reading {
    let known = &KNOWN[language as usize];
    let found = {
        let known = known.read().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().and_then(|known| known.get(sql).copied())
    };
    found.unwrap_or_else(|| learn(known, language, sql))
}

#[cold]
fn learn(known: &Known, language: Language, sql: &str) -> Reading {
    let reading = Reading::new(language, sql);
    if sql.len() <= LONGEST {
        let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(sql.into(), reading);
    }
    reading
}

#[cfg(test)]
mod tests;
