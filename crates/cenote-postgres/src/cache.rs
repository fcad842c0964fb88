//! The cache of prepared statements of one session.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_postgres::types::Type;

use crate::statement::Statement;

/// Keeps the statements that were used last, up to its capacity.
pub(crate) struct Cache {
    capacity: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By text. Most texts are prepared with one list of types.
    by_text: HashMap<Box<str>, Vec<Entry>>,
    count: usize,
    uses: u64,
}

struct Entry {
    statement: Statement,
    last_use: u64,
}

impl Cache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            kept: Mutex::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().count
    }

    pub(crate) fn find(&self, sql: &str, types: &[Type]) -> Option<Statement> {
        let mut kept = self.lock();
        kept.uses += 1;
        let uses = kept.uses;
        let entries = kept.by_text.get_mut(sql)?;
        let has_types = |entry: &&mut Entry| &*entry.statement.prepared().types == types;
        let entry = entries.iter_mut().find(has_types)?;
        entry.last_use = uses;
        Some(entry.statement.clone())
    }

    /// Keeps a statement. Dropping a statement sends a message, which happens outside of the lock.
    pub(crate) fn keep(&self, statement: &Statement) {
        if self.capacity == 0 {
            return;
        }
        let (sql, types) = (&statement.prepared().sql, &statement.prepared().types);
        let replaced = self.forget(sql, types);
        let mut kept = self.lock();
        let oldest = match kept.count >= self.capacity {
            true => kept.take_oldest(),
            false => None,
        };
        kept.uses += 1;
        kept.count += 1;
        let entry = Entry {
            statement: statement.clone(),
            last_use: kept.uses,
        };
        kept.by_text.entry(sql.clone()).or_default().push(entry);
        drop(kept);
        drop((replaced, oldest));
    }

    pub(crate) fn forget(&self, sql: &str, types: &[Type]) -> Option<Statement> {
        self.lock().take(sql, types)
    }

    /// Forgets all statements, because the server has forgotten them.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn take(&mut self, sql: &str, types: &[Type]) -> Option<Statement> {
        let entries = self.by_text.get_mut(sql)?;
        let has_types = |entry: &Entry| &*entry.statement.prepared().types == types;
        let at = entries.iter().position(has_types)?;
        let entry = entries.swap_remove(at);
        if entries.is_empty() {
            self.by_text.remove(sql);
        }
        self.count -= 1;
        Some(entry.statement)
    }

    /// A walk, because it runs only when a new statement was just prepared over the network.
    fn take_oldest(&mut self) -> Option<Statement> {
        let entries = self.by_text.values().flatten();
        let oldest = entries.min_by_key(|entry| entry.last_use)?;
        let oldest = oldest.statement.clone();
        self.take(&oldest.prepared().sql, &oldest.prepared().types)
    }
}
