//! A transaction that is passed along by hand. The ambient one is in `ambient.rs`.

use std::fmt;
use std::ops::{Deref, DerefMut};

use futures_core::future::BoxFuture;
use sqlx::{Acquire, Connection, Error};

use crate::dialect::Dialect;
use crate::lease::Lease;
use crate::session::Session;

/// How a transaction is begun. A nested one takes none of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionOptions {
    pub(crate) isolation: Option<Isolation>,
    pub(crate) read_only: bool,
}

impl TransactionOptions {
    /// As the database does by itself.
    pub fn new() -> Self {
        Self::default()
    }

    /// With this isolation level. SQLite is serializable always.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// Without the right to write: whatever tries is refused.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }
}

/// How far transactions are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Sees what others have not committed, if the database allows it.
    ReadUncommitted,
    /// Sees what others have committed, at each statement anew.
    ReadCommitted,
    /// Sees one state of the database.
    RepeatableRead,
    /// As if one transaction ran after the other.
    Serializable,
}

impl Isolation {
    /// As SQL calls it.
    pub fn sql(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "READ UNCOMMITTED",
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

/// An open transaction, with the connection that it runs on. It can be moved to another task. Dropped without
/// [`commit`](Transaction::commit), it is rolled back before anybody else uses the connection.
///
/// `&mut transaction` is an `Executor`.
#[must_use = "a transaction that is not committed is rolled back"]
pub struct Transaction<'c, DB: Dialect> {
    held: Held<'c, DB>,
    depth: usize,
}

enum Held<'c, DB: Dialect> {
    Own(Lease<DB>),
    Outer(&'c mut Lease<DB>),
    Over,
}

impl<DB: Dialect> Transaction<'static, DB> {
    pub(crate) async fn own(
        mut lease: Lease<DB>,
        options: &TransactionOptions,
    ) -> Result<Self, Error> {
        let depth = lease.session().begin(options).await?;
        Ok(Self {
            held: Held::Own(lease),
            depth,
        })
    }
}

impl<DB: Dialect> Transaction<'_, DB> {
    /// Makes it last, and gives the connection back.
    ///
    /// # Cancel safety
    /// Dropped midway, it may or may not be committed.
    pub async fn commit(mut self) -> Result<(), Error> {
        let depth = self.depth;
        self.lease().session().commit(depth).await?;
        self.held = Held::Over;
        Ok(())
    }

    /// Undoes it, and gives the connection back.
    ///
    /// # Cancel safety
    /// Dropped midway, it is rolled back all the same.
    pub async fn rollback(mut self) -> Result<(), Error> {
        let depth = self.depth;
        self.lease().session().roll_back(depth).await?;
        self.held = Held::Over;
        Ok(())
    }

    /// Begins a transaction inside this one: a savepoint.
    ///
    /// # Cancel safety
    /// Dropped midway, the outer transaction may be lost; then its commit says so.
    pub async fn begin(&mut self) -> Result<Transaction<'_, DB>, Error> {
        let lease = self.lease();
        let depth = lease.session().begin(&TransactionOptions::new()).await?;
        Ok(Transaction {
            held: Held::Outer(lease),
            depth,
        })
    }

    pub(crate) fn lease(&mut self) -> &mut Lease<DB> {
        match &mut self.held {
            Held::Own(lease) => lease,
            Held::Outer(lease) => lease,
            Held::Over => unreachable!("bug: a transaction that is over is used"),
        }
    }

    pub(crate) fn session_for(&mut self, sql: &str) -> &mut Session<DB> {
        self.lease().session_for(sql)
    }
}

impl<DB: Dialect> Drop for Transaction<'_, DB> {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.held, Held::Over) {
            Held::Own(mut lease) => {
                let stays = lease.is_pinned();
                lease.session().abandon(self.depth, stays);
                if !stays {
                    drop(lease.let_go());
                }
            }
            Held::Outer(lease) => lease.session().abandon(self.depth, true),
            Held::Over => {}
        }
    }
}

impl<DB: Dialect> Deref for Transaction<'_, DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        match &self.held {
            Held::Own(lease) => lease,
            Held::Outer(lease) => lease,
            Held::Over => unreachable!("bug: a transaction that is over is used"),
        }
    }
}

impl<DB: Dialect> DerefMut for Transaction<'_, DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        self.lease()
    }
}

impl<'t, DB: Dialect> Acquire<'t> for &'t mut Transaction<'_, DB> {
    type Database = DB;
    type Connection = &'t mut DB::Connection;

    fn acquire(self) -> BoxFuture<'t, Result<Self::Connection, Error>> {
        Box::pin(async move { Ok(&mut **self) })
    }

    fn begin(self) -> BoxFuture<'t, Result<sqlx::Transaction<'t, DB>, Error>> {
        Box::pin(async move { Connection::begin(&mut **self).await })
    }
}

impl<DB: Dialect> fmt::Debug for Transaction<'_, DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("database", &DB::NAME)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}
