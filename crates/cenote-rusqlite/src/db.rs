//! The handle: reads on many connections, writes on one.

use std::path::Path;
use std::time::Duration;

use cenote::{AcquireError, Leftover, WarmError};
use rusqlite::{Connection, Transaction};

use crate::builder::Builder;
use crate::config::Config;
use crate::error::{Error, SessionError};
use crate::{Lease, Pool};

/// A database. It is a cheap handle: clone it and share it.
///
/// Reads run on up to `max_size` connections, which refuse to write. Writes run on one more
/// connection, one after the other, in the order in which they were asked for. So no write of this
/// process is refused because the database is busy, and no read of a file waits for a write.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_rusqlite::Db;
///
/// let db = Db::memory().build()?;
/// db.write(|tx| tx.execute_batch("CREATE TABLE cart (item TEXT); INSERT INTO cart VALUES ('tea')"))
///     .await?;
/// let item = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
/// let found = db.read(move |conn| conn.query_row("SELECT item FROM cart", [], item)).await?;
/// assert_eq!(found, "tea");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Db {
    pool: Pool,
}

impl Db {
    /// Begins to build a handle of a database in a file. The name is taken as it is, also if it
    /// looks like a URL. The file is created if it is missing.
    pub fn file(path: impl AsRef<Path>) -> Builder {
        Builder::file(path.as_ref().to_owned())
    }

    /// Begins to build a handle of a new database in memory. It lives as long as its pool.
    ///
    /// It has no write-ahead log, so here a read waits for a write, for up to `busy_timeout`.
    pub fn memory() -> Builder {
        Builder::memory()
    }

    /// Begins to build a handle of the database that a URL names.
    ///
    /// | URL | database |
    /// |---|---|
    /// | `shop.db` | this file |
    /// | `file:shop.db?mode=ro` | a URI of SQLite, with the parameters that SQLite knows |
    /// | `sqlite://shop.db?mode=ro` | the same |
    /// | `:memory:` | a new database in memory |
    /// | `file:/carts?vfs=memdb` | a database in memory that all pools of the process share |
    ///
    /// ```
    /// use cenote_rusqlite::Db;
    ///
    /// assert!(Db::url("sqlite://shop.db?mode=rw").build().is_ok());
    /// assert!(Db::url("mysql://localhost/shop").build().is_err());
    /// ```
    pub fn url(url: impl AsRef<str>) -> Builder {
        Builder::url(url.as_ref())
    }

    /// Begins to build a handle from settings that are plain data. [`Config`] has an example.
    pub fn from_config(config: Config) -> Builder {
        Builder::from_config(config)
    }

    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Runs a closure on a connection that refuses to write, and returns its result.
    ///
    /// Several statements see the same state of the database only in a transaction of their own:
    /// `conn.transaction()`. A transaction that is left open is rolled back.
    ///
    /// # Cancel safety
    /// If the future is dropped while the closure runs, its statements are interrupted. The
    /// connection is not lent again before the closure has ended.
    #[track_caller]
    pub fn read<T, E>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> impl Future<Output = Result<T, Error<E>>> + Send
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let acquire = self.pool.acquire();
        async move { acquire.await?.read(work).await }
    }

    /// Runs a closure in a transaction, which begins with the right to write (`BEGIN IMMEDIATE`).
    /// It commits if the closure returns `Ok`, and rolls back if it returns an error or panics.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_rusqlite::Db::memory().build()?;
    /// db.write(|tx| tx.execute_batch("CREATE TABLE cart (item TEXT)")).await?;
    /// let rolled_back = db.write(|tx| {
    ///     tx.execute("INSERT INTO cart VALUES ('tea')", [])?;
    ///     tx.execute("INSERT INTO no_such_table VALUES (1)", [])
    /// });
    /// assert!(rolled_back.await.is_err());
    /// let count = |conn: &mut rusqlite::Connection| {
    ///     conn.query_row("SELECT count(*) FROM cart", [], |row| row.get::<_, i64>(0))
    /// };
    /// assert_eq!(db.read(count).await?, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// If the future is dropped while the closure runs, its statements are interrupted, and the
    /// transaction is rolled back. If it is dropped later, the transaction may be committed. The
    /// next write begins after that.
    #[track_caller]
    pub fn write<T, E>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> impl Future<Output = Result<T, Error<E>>> + Send
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let acquire = self.writer().acquire();
        async move { acquire.await?.write(work).await }
    }

    /// As [`read`](Db::read), for threads. It blocks, and works without a runtime.
    ///
    /// ```
    /// let db = cenote_rusqlite::Db::memory().build()?;
    /// let one = |conn: &mut rusqlite::Connection| {
    ///     conn.query_row("SELECT 1", [], |row| row.get::<_, i64>(0))
    /// };
    /// assert_eq!(db.read_blocking(one)?, 1);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// In a task of a runtime, whose thread it would block.
    #[track_caller]
    pub fn read_blocking<T, E>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Error<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let mut lease = self.pool.acquire_blocking()?;
        lease.run_blocking(|desk| desk.read(work))
    }

    /// As [`write`](Db::write), for threads. It blocks, and works without a runtime.
    ///
    /// # Panics
    /// In a task of a runtime, whose thread it would block.
    #[track_caller]
    pub fn write_blocking<T, E>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Error<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let mut lease = self.writer().acquire_blocking()?;
        lease.run_blocking(|desk| desk.write(work))
    }

    /// Lends a connection that refuses to write, for several calls.
    ///
    /// # Cancel safety
    /// As [`cenote::Pool::acquire`].
    #[track_caller]
    pub fn acquire(
        &self,
    ) -> impl Future<Output = Result<Lease, AcquireError<SessionError>>> + Send {
        self.pool.acquire()
    }

    /// Lends the connection that writes, for several calls. All writes of other callers wait until
    /// the lease ends.
    ///
    /// # Cancel safety
    /// As [`cenote::Pool::acquire`].
    #[track_caller]
    pub fn acquire_writer(
        &self,
    ) -> impl Future<Output = Result<Lease, AcquireError<SessionError>>> + Send {
        self.writer().acquire()
    }

    /// Opens the writer and the readers that `min_size` and `min_idle` ask for, at least one. So a
    /// missing file or folder is found at the start of a program.
    ///
    /// # Cancel safety
    /// Dropping this future only stops the waiting. Opens that were begun go on.
    pub async fn warm(&self) -> Result<(), WarmError<SessionError>> {
        self.writer().warm().await?;
        self.pool.warm().await
    }

    /// Closes all connections, and waits up to `limit` for those that are lent. Returns which were
    /// still lent. `db.pool().sever()` then interrupts their closures.
    ///
    /// # Cancel safety
    /// Dropping this future only stops the waiting. The pool is closed.
    pub async fn close_within(&self, limit: Duration) -> Leftover {
        self.pool.close_within(limit).await
    }

    /// Returns the pool: its status, its health, its leases. Its annex has the writer.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    fn writer(&self) -> &Pool {
        let writer = self.pool.annex();
        writer.expect("the builder adds the writer")
    }
}
