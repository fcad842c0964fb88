//! The template of all connections of a pool: where the database is, and how a connection is set.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::place::Place;

/// How long a connection waits between two tries to turn the write-ahead log on.
const PAUSE: Duration = Duration::from_millis(2);

/// What is done with each new connection.
pub(crate) type Init = dyn Fn(&mut Connection) -> rusqlite::Result<()> + Send + Sync;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Role {
    Reader,
    Writer,
}

pub(crate) struct Template {
    pub(crate) place: Place,
    pub(crate) flags: OpenFlags,
    pub(crate) busy_timeout: Duration,
    pub(crate) statement_cache: usize,
    pub(crate) settings: Vec<String>,
    pub(crate) init: Option<Box<Init>>,
    /// Keeps a database in memory alive while the pool has no other connection.
    pub(crate) anchor: Mutex<Option<Connection>>,
}

impl Template {
    /// Opens a connection on its thread. Calls `prepare` before its settings are made. It blocks.
    pub(crate) fn open(
        &self,
        role: Role,
        prepare: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<Connection> {
        self.drop_anchor()?;
        let mut connection = self.place.open(self.flags)?;
        prepare(&connection)?;
        connection.set_prepared_statement_cache_capacity(self.statement_cache);
        if !self.place.is_in_memory() && !connection.is_readonly("main")? {
            self.log_ahead(&connection)?;
        }
        connection.execute_batch("PRAGMA foreign_keys = 1; PRAGMA synchronous = NORMAL")?;
        for setting in &self.settings {
            connection.execute_batch(setting)?;
        }
        if let Some(init) = &self.init {
            init(&mut connection)?;
        }
        if role == Role::Reader {
            connection.execute_batch("PRAGMA query_only = 1")?;
        }
        probe(&connection)?;
        Ok(connection)
    }

    /// Opens the connection that keeps a database in memory alive.
    fn drop_anchor(&self) -> rusqlite::Result<()> {
        if self.place.is_in_memory() {
            let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
            if anchor.is_none() {
                *anchor = Some(self.place.open(self.flags)?);
            }
        }
        Ok(())
    }

    /// Turns the write-ahead log on, with which readers and the writer do not wait for each other.
    /// The file remembers it. SQLite does not wait for the lock that this needs, so this does.
    fn log_ahead(&self, connection: &Connection) -> rusqlite::Result<()> {
        let is_busy =
            |error: &rusqlite::Error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
        let mut waited = Duration::ZERO;
        loop {
            match turn_wal_on(connection) {
                Err(error) if is_busy(&error) && waited < self.busy_timeout => {
                    thread::sleep(PAUSE);
                    waited += PAUSE;
                }
                tried => return tried,
            }
        }
    }
}

fn turn_wal_on(connection: &Connection) -> rusqlite::Result<()> {
    let mode = |sql| connection.query_row(sql, [], |row| row.get::<_, String>(0));
    if mode("PRAGMA journal_mode")? != "wal" {
        mode("PRAGMA journal_mode = WAL")?;
    }
    Ok(())
}

/// Reads the first page of the database, which fails if the file is no database.
pub(crate) fn probe(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM sqlite_master LIMIT 1")?;
    statement.exists([]).map(drop)
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template")
            .field("place", &self.place)
            .field("busy_timeout", &self.busy_timeout)
            .field("statement_cache", &self.statement_cache)
            .finish_non_exhaustive()
    }
}
