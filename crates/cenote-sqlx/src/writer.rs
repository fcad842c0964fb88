//! The right to write, for a database with one writer at a time. The only connection of the annex
//! of the pool has it. Writers queue there, in order, and their connection stays warm.
//!
//! A statement that writes and changes nothing else uses that connection, and so does a
//! transaction. A text that also changes the session must not leave the writer to its scope. It
//! gets a connection of the pool, and holds the right until no transaction is open. So does a write
//! while there are no others: the connection that was used last is the warmest then.

use std::any::Any;
use std::panic::Location;
use std::time::Instant;

use cenote::Pool;
use cenote::scope::{BindError, Scope};
use sqlx::Error;

use crate::db::Db;
use crate::dialect::Dialect;
use crate::dirt::Dirt;
use crate::error::from_bind;
use crate::label;
use crate::manager::Sql;
use crate::reading::{Access, Reading};

/// A lease of the writer's connection, which is only held.
pub(crate) type Right = Box<dyn Any + Send + Sync>;

/// Where a caller asks for its connection, and what it has before.
pub(crate) struct Turn<'a, DB: Dialect> {
    pub(crate) pool: &'a Pool<Sql<DB>>,
    /// Whether that is the annex.
    pub(crate) apart: bool,
    /// The right to write, if the connection is not that of the writer.
    pub(crate) right: Option<Right>,
    /// The deadline of the whole call, if part of its time was spent on the wait for the right.
    pub(crate) deadline: Option<Instant>,
}

impl<DB: Dialect> Db<DB> {
    /// Returns the turn of a statement.
    pub(crate) async fn turn(
        &self,
        site: &'static Location<'static>,
        sql: &str,
        reading: &Reading,
    ) -> Result<Turn<'_, DB>, Error> {
        let writes = reading.access == Access::Writes;
        match reading.dirt {
            Dirt::NONE => Ok(self.turn_at_once(writes)),
            _ if writes => self.turn_with_right(site, sql).await,
            _ => Ok(self.turn_at_once(false)),
        }
    }

    /// Returns the turn of a reader, or of a writer that leaves no changed session behind.
    pub(crate) fn turn_at_once(&self, writes: bool) -> Turn<'_, DB> {
        let writer = self.pool().annex().filter(|writer| {
            // A scope keeps the connection that it has.
            is_pinned(writer) || writes && !is_pinned(self.pool())
        });
        Turn {
            pool: writer.unwrap_or(self.pool()),
            apart: writer.is_some(),
            right: None,
            deadline: None,
        }
    }

    /// Waits for the right to write. A scope that holds a connection does not wait, because the
    /// current writer may wait for that connection.
    async fn turn_with_right(
        &self,
        site: &'static Location<'static>,
        sql: &str,
    ) -> Result<Turn<'_, DB>, Error> {
        let mut turn = self.turn_at_once(false);
        let Some(writer) = self.pool().annex().filter(|_| !self.has_pinned()) else {
            return Ok(turn);
        };
        turn.deadline = self.deadline();
        let right = writer.acquire_at(site, turn.deadline).await;
        let right = right.map_err(|error| from_bind(BindError::Acquire(error)))?;
        cenote::Lease::label(&right, label::in_scope(sql));
        turn.right = Some(Box::new(right));
        Ok(turn)
    }

    /// Returns whether a connection is pinned in the scope of the caller.
    pub(crate) fn has_pinned(&self) -> bool {
        is_pinned(self.pool()) || self.pool().annex().is_some_and(is_pinned)
    }
}

fn is_pinned<DB: Dialect>(pool: &Pool<Sql<DB>>) -> bool {
    Scope::current().is_some_and(|scope| scope.is_pinned(pool))
}
