//! The handle: looks like one connection, is shared by all tasks, and lends each statement the right one.

use std::fmt;
use std::future::Future;
use std::panic::Location;

use cenote::{BindError, Pool, Scope, WarmError};
use sqlx::Error;

use crate::ambient;
use crate::builder::Builder;
use crate::dialect::{Dialect, Options};
use crate::error::{Class, from_bind};
use crate::lease::Lease;
use crate::manager::Sql;
use crate::scan;
use crate::transaction::{Transaction, TransactionOptions};
use crate::writer::{Turn, Writer};

/// A database: a cheap handle, to be cloned and shared. `&db` is an `Executor`, so that `sqlx::query(..).fetch_all(&db)` just works.
///
/// It is a template: URL, credentials and settings for connections that are opened when they are needed. Each statement borrows one and
/// gives it back. In a [scope](cenote::scope()) it keeps the one whose session the next statement would miss: an open transaction, or a
/// session that was changed.
pub struct Db<DB: Dialect> {
    pool: Pool<Sql<DB>>,
    writers: Option<Pool<Writer>>,
}

#[cfg(feature = "postgres")]
impl Db<sqlx::Postgres> {
    /// Of PostgreSQL, by URL. Settings of the pool can stand in it: `?cenote.max_size=20`.
    pub fn postgres(url: impl Into<String>) -> Builder<sqlx::Postgres> {
        Builder::from_url(url)
    }
}

#[cfg(feature = "mysql")]
impl Db<sqlx::MySql> {
    /// Of MySQL or MariaDB, by URL. Settings of the pool can stand in it: `?cenote.max_size=20`.
    pub fn mysql(url: impl Into<String>) -> Builder<sqlx::MySql> {
        Builder::from_url(url)
    }
}

#[cfg(feature = "sqlite")]
impl Db<sqlx::Sqlite> {
    /// Of SQLite, by URL. Settings of the pool can stand in it: `?cenote.max_size=20`.
    ///
    /// What a URL cannot say is set for concurrency: WAL, a busy timeout of 5 s, foreign keys on, `synchronous = NORMAL`. Options of
    /// sqlx that are given to [`with_options`](Db::with_options) are left as they are.
    pub fn sqlite(url: impl Into<String>) -> Builder<sqlx::Sqlite> {
        Builder::from_url(url)
    }
}

impl<DB: Dialect> Db<DB> {
    pub(crate) fn new(pool: Pool<Sql<DB>>, writers: Option<Pool<Writer>>) -> Self {
        Self { pool, writers }
    }

    /// By URL, of whichever database `DB` is.
    pub fn from_url(url: impl Into<String>) -> Builder<DB> {
        Builder::from_url(url)
    }

    /// With sqlx's own options.
    pub fn with_options(options: Options<DB>) -> Builder<DB> {
        Builder::from_options(options)
    }

    /// The pool: its status, its leases, `resize`, `invalidate`, `close`.
    pub fn pool(&self) -> &Pool<Sql<DB>> {
        &self.pool
    }

    /// Opens connections until there are `max(min_size, min_idle, 1)`, and fails if it cannot: after
    /// a success the server was reached.
    ///
    /// # Cancel safety
    /// What is being opened is opened all the same.
    pub async fn warm(&self) -> Result<(), WarmError<Error>> {
        self.pool.warm().await
    }

    /// Lends a connection, for more than one statement on it. In a transaction of this scope it is that one's.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
    /// let mut lease = db.acquire().await?;
    /// sqlx::query("CREATE TEMP TABLE t (a INTEGER)").execute(&mut lease).await?;
    /// sqlx::query("INSERT INTO t VALUES (1)").execute(&mut lease).await?; // the same session
    /// assert_eq!(db.pool().status().in_use, 1);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future gives the place in line back.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<Lease<DB>, Error>> + Send {
        let binding = self.pool.bind();
        async move { binding.await.map(Lease::new).map_err(from_bind) }
    }

    /// Begins a transaction that is passed along by hand: `&mut transaction` is the executor. In a transaction of this scope it is a
    /// savepoint, and until it ends other statements there wait for it.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
    /// let mut transaction = db.begin().await?;
    /// sqlx::query("CREATE TABLE t (a INTEGER)").execute(&mut transaction).await?;
    /// drop(transaction); // not committed
    /// assert!(sqlx::query("SELECT * FROM t").execute(&db).await.is_err());
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// Dropped midway, nothing stays open.
    #[track_caller]
    pub fn begin(&self) -> impl Future<Output = Result<Transaction<'static, DB>, Error>> + Send {
        self.begin_with(TransactionOptions::new())
    }

    /// As [`begin`](Db::begin), with options.
    ///
    /// # Cancel safety
    /// As [`begin`](Db::begin).
    #[track_caller]
    pub fn begin_with(
        &self,
        options: TransactionOptions,
    ) -> impl Future<Output = Result<Transaction<'static, DB>, Error>> + Send {
        let acquiring = self.acquire_for(options);
        async move { Transaction::own(acquiring.await?, &options).await }
    }

    /// Runs `work` in a transaction: committed if it ends well, rolled back if it ends with an error, by a panic, or is dropped.
    ///
    /// Every `&db` of this database in `work` is part of it, however deep in the calls, and without being passed along. A transaction inside
    /// it is a savepoint. Two statements of it at the same time wait for each other. A task that is spawned inside is *not* part of it:
    /// hand it [`Scope::current`], and let it [`run`](Scope::run) there.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_sqlx::Db;
    ///
    /// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
    /// sqlx::query("CREATE TABLE t (a INTEGER)").execute(&db).await?;
    /// let failed: Result<(), sqlx::Error> = db.transaction(async || {
    ///     sqlx::query("INSERT INTO t VALUES (1)").execute(&db).await?;
    ///     Err(sqlx::Error::RowNotFound)
    /// }).await;
    /// assert!(failed.is_err());
    /// let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM t").fetch_one(&db).await?;
    /// assert_eq!(rows, 0);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future drops `work`, and rolls back; in the middle of the commit nobody can tell.
    #[track_caller]
    pub fn transaction<F, Fut, T, E>(&self, work: F) -> impl Future<Output = Result<T, E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        self.transaction_with(TransactionOptions::new(), work)
    }

    /// As [`transaction`](Db::transaction), with options.
    ///
    /// # Cancel safety
    /// As [`transaction`](Db::transaction).
    #[track_caller]
    pub fn transaction_with<F, Fut, T, E>(
        &self,
        options: TransactionOptions,
        work: F,
    ) -> impl Future<Output = Result<T, E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let acquiring = self.acquire_for(options);
        async move { ambient::run(self, acquiring.await?, &options, work).await }
    }

    /// Is the caller in a transaction of this database? One that was begun by SQL text (`BEGIN` through `&db`, in a scope) counts too, as
    /// the text tells it: not seen is what a function does, what was done by `&mut *lease`, and what the server ended by itself (MySQL does so
    /// at each `CREATE` or `ALTER`). Nothing is asked of the server.
    pub fn in_transaction(&self) -> bool {
        let Some(scope) = Scope::current() else {
            return false;
        };
        match scope.peek(&self.pool) {
            Some(bound) => bound.is_in_transaction(),
            // In use at this moment, so it cannot be asked. It is there for a transaction or for a changed session.
            None => scope.is_pinned(&self.pool),
        }
    }

    /// The connection that is bound to this scope, without acquiring one. `None` if there is none, or if it is in use.
    pub fn peek(&self) -> Option<Lease<DB>> {
        Scope::current()?.peek(&self.pool).map(Lease::new)
    }

    /// What `error` means for its connection, and for the caller.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
    /// use cenote_sqlx::{Class, Db};
    ///
    /// let error = sqlx::query("SELEKT 1").execute(&db).await.unwrap_err();
    /// assert_eq!(Db::<sqlx::Sqlite>::classify(&error), Class::Statement);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn classify(error: &Error) -> Class {
        DB::classify(error)
    }

    /// A connection for a transaction.
    #[track_caller]
    fn acquire_for(
        &self,
        options: TransactionOptions,
    ) -> impl Future<Output = Result<Lease<DB>, Error>> + Send {
        let site = Location::caller();
        async move {
            let turn = match options.read_only {
                true => Turn::default(),
                false => self.turn_to_write("transaction").await?,
            };
            self.bind(site, turn).await
        }
    }

    /// A connection for one statement.
    pub(crate) async fn acquire_to(&self, sql: &str) -> Result<Lease<DB>, Error> {
        let turn = if self.writers.is_some() && !DB::is_read(sql) {
            self.turn_to_write(sql).await?
        } else {
            Turn::default()
        };
        self.bind(Location::caller(), turn).await
    }

    /// Where there is room for one writer: waits for its turn. A scope that holds a connection
    /// already does not wait: the writer whose turn it is might wait for that connection.
    async fn turn_to_write(&self, sql: &str) -> Result<Turn, Error> {
        let Some(writers) = &self.writers else {
            return Ok(Turn::default());
        };
        if Scope::current().is_some_and(|scope| scope.is_pinned(&self.pool)) {
            return Ok(Turn::default());
        }
        let deadline = self.pool.deadline();
        let writer = match deadline {
            Some(deadline) => writers.acquire_until(deadline).await,
            None => writers.acquire().await,
        };
        let writer = writer.map_err(|error| from_bind(BindError::Acquire(error)))?;
        cenote::Lease::label(&writer, scan::label(sql));
        Ok(Turn {
            writer: Some(writer),
            deadline,
        })
    }

    /// A connection for a caller whose turn it is, within the deadline of the whole call.
    async fn bind(&self, site: &'static Location<'static>, turn: Turn) -> Result<Lease<DB>, Error> {
        let bound = self.pool.bind_at(site, turn.deadline).await;
        let mut bound = bound.map_err(from_bind)?;
        bound.state.writer = turn.writer.or_else(|| bound.state.writer.take());
        Ok(Lease::new(bound))
    }
}

impl<DB: Dialect> Clone for Db<DB> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            writers: self.writers.clone(),
        }
    }
}

impl<DB: Dialect> fmt::Debug for Db<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db")
            .field("database", &DB::NAME)
            .field("pool", &self.pool)
            .finish()
    }
}
