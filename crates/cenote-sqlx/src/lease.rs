//! A borrowed connection.

use std::fmt;
use std::ops::{Deref, DerefMut};

use cenote::Pool;
use cenote::scope::Bound;
use futures_core::future::BoxFuture;
use sqlx::{Acquire, Connection, Error};

use crate::db::Db;
use crate::dialect::Dialect;
use crate::label;
use crate::manager::Sql;
use crate::session::{Progress, Session};

/// A connection of a [`Db`](crate::Db). It goes back when the lease is dropped.
///
/// `&mut lease` is an `Executor`. A lease derefs to the connection of sqlx. After a mutable deref
/// the state of the session is unknown, so it is reset before its next use, or closed where there
/// is no reset.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::{Db, Lease};
///
/// let db = Db::sqlite("sqlite::memory:").max_size(1).build()?;
/// let mut lease = db.acquire().await?;
/// let first = Lease::id(&lease);
/// sqlx::query("SELECT 1").execute(&mut lease).await?;
/// Lease::discard(lease);
/// assert_ne!(Lease::id(&db.acquire().await?), first);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
#[must_use = "a lease that is not kept goes back at once"]
pub struct Lease<DB: Dialect> {
    /// Present until the lease ends.
    bound: Option<Bound<Sql<DB>>>,
    /// Whether the connection is that of the writer.
    apart: bool,
}

impl<DB: Dialect> Lease<DB> {
    pub(crate) fn new(bound: Bound<Sql<DB>>, apart: bool) -> Self {
        Self {
            bound: Some(bound),
            apart,
        }
    }

    /// Returns the pool of its connection.
    pub(crate) fn pool_of<'a>(&self, db: &'a Db<DB>) -> &'a Pool<Sql<DB>> {
        let writer = db.pool().annex().filter(|_| self.apart);
        writer.unwrap_or(db.pool())
    }

    /// Returns the number of the connection in its pool.
    pub fn id(this: &Self) -> u64 {
        cenote::Lease::id(this.bound())
    }

    /// Ends the lease and closes the connection. A transaction on the connection is lost.
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

    /// Returns the session, and labels the lease with this statement.
    pub(crate) fn session_for(&mut self, sql: &str) -> &mut Session<DB> {
        let bound = self.bound();
        cenote::Lease::label_metered(bound, label::in_scope(sql), &bound.meter);
        self.session()
    }

    pub(crate) fn is_pinned(&self) -> bool {
        Bound::is_pinned(self.bound())
    }

    /// Returns the inner lease, with its right to write.
    pub(crate) fn let_go(mut self) -> Option<Bound<Sql<DB>>> {
        self.bound.take()
    }

    fn bound(&self) -> &Bound<Sql<DB>> {
        self.bound
            .as_ref()
            .expect("the bound lease is taken only when this lease ends")
    }

    fn bound_mut(&mut self) -> &mut Bound<Sql<DB>> {
        self.bound
            .as_mut()
            .expect("the bound lease is taken only when this lease ends")
    }
}

impl<DB: Dialect> Drop for Lease<DB> {
    /// Gives up the right to write, unless a transaction needs it. In a scope, `must_stay` decides
    /// whether the connection stays there.
    fn drop(&mut self) {
        let Some(bound) = &mut self.bound else {
            return;
        };
        let done = bound.state.progress == Progress::Done;
        if done && !bound.is_in_transaction() {
            bound.right = None;
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

impl<DB: Dialect> AsRef<DB::Connection> for Lease<DB> {
    fn as_ref(&self) -> &DB::Connection {
        self
    }
}

/// For functions of sqlx that take any owner of a connection, like `PgAdvisoryLock::acquire`.
impl<DB: Dialect> AsMut<DB::Connection> for Lease<DB> {
    fn as_mut(&mut self) -> &mut DB::Connection {
        self
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
