//! A connection, lent: for who needs more than one statement on it, and for every statement that asks for none.

use std::fmt;
use std::ops::{Deref, DerefMut};

use cenote::Bound;
use futures_core::future::BoxFuture;
use sqlx::{Acquire, Connection, Error};

use crate::dialect::Dialect;
use crate::manager::Sql;
use crate::scan;
use crate::session::{Flight, Session};

/// A connection of a [`Db`](crate::Db), until it is dropped.
///
/// `&mut lease` is an `Executor`. It derefs to the connection of sqlx for whatever else that can do; then nobody knows what was done to the
/// session, and it is reset before its next use (closed, where there is no reset).
#[must_use = "a lease that is not kept goes back at once"]
pub struct Lease<DB: Dialect> {
    /// Present until the lease ends.
    bound: Option<Bound<Sql<DB>>>,
}

impl<DB: Dialect> Lease<DB> {
    pub(crate) fn new(bound: Bound<Sql<DB>>) -> Self {
        Self { bound: Some(bound) }
    }

    /// The number of the connection in its pool.
    pub fn id(this: &Self) -> u64 {
        cenote::Lease::id(this.bound())
    }

    /// Ends the lease and closes the connection. If it is that of a transaction, the transaction is lost.
    pub fn discard(mut this: Self) {
        if this.session().is_in_transaction() {
            this.session().state.broken = true;
        } else if let Some(bound) = this.bound.take() {
            Bound::discard(bound);
        }
    }

    pub(crate) fn session(&mut self) -> &mut Session<DB> {
        self.bound_mut()
    }

    /// The session, for this statement.
    pub(crate) fn session_for(&mut self, sql: &str) -> &mut Session<DB> {
        cenote::Lease::label(self.bound(), scan::label(sql));
        self.session()
    }

    pub(crate) fn is_pinned(&self) -> bool {
        Bound::is_pinned(self.bound())
    }

    /// Ends it without a look at what it leaves behind: it goes where it came from.
    pub(crate) fn let_go(mut self) -> Option<Bound<Sql<DB>>> {
        self.bound.take()
    }

    fn bound(&self) -> &Bound<Sql<DB>> {
        self.bound
            .as_ref()
            .expect("it is there until the lease ends")
    }

    fn bound_mut(&mut self) -> &mut Bound<Sql<DB>> {
        self.bound
            .as_mut()
            .expect("it is there until the lease ends")
    }
}

impl<DB: Dialect> Drop for Lease<DB> {
    /// In a scope it stays if the next statement there would miss it. One that broke makes room for another, unless a transaction is
    /// lost with it: then the error stands.
    fn drop(&mut self) {
        let Some(mut bound) = self.bound.take() else {
            return;
        };
        let in_transaction = bound.is_in_transaction();
        let landed = bound.state.flight == Flight::Landed;
        if landed && !in_transaction {
            bound.state.writer = None;
        }
        if bound.state.broken && !in_transaction {
            Bound::unpin(&mut bound);
        } else if landed && !bound.state.broken && !Bound::is_pinned(&bound) && bound.is_bound() {
            Bound::pin(&mut bound);
        }
    }
}

impl<DB: Dialect> Deref for Lease<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.bound().connection
    }
}

impl<DB: Dialect> DerefMut for Lease<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        self.session().raw()
    }
}

impl<'c, DB: Dialect> Acquire<'c> for &'c mut Lease<DB> {
    type Database = DB;
    type Connection = &'c mut DB::Connection;

    fn acquire(self) -> BoxFuture<'c, Result<Self::Connection, Error>> {
        Box::pin(async move { Ok(self.session().raw()) })
    }

    fn begin(self) -> BoxFuture<'c, Result<sqlx::Transaction<'c, DB>, Error>> {
        Box::pin(async move { self.session().raw().begin().await })
    }
}

impl<DB: Dialect> fmt::Debug for Lease<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.bound.as_deref().map(|lease| &**lease);
        f.debug_struct("Lease").field("session", &session).finish()
    }
}
