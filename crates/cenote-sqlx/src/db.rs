//! The handle: an `Executor` that all tasks share. It borrows a connection for each statement.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use cenote::scope::Bound;
use cenote::status::UNKNOWN_SITE;
use cenote::{Pool, WarmError};
use sqlx::Error;

use crate::builder::Builder;
use crate::dialect::{Dialect, Options};
use crate::error::{Class, from_bind};
use crate::known;
use crate::lease::Lease;
use crate::manager::Sql;
use crate::refusal;
use crate::sandbox::Sandbox;
use crate::transaction::TransactionOptions;
use crate::watchdog::watched;
use crate::writer::Turn;

/// A database: a cheap handle that is cloned and shared. `&db` is an `Executor`, so
/// `sqlx::query(..).fetch_all(&db)` works.
///
/// The handle has the URL, the credentials and the settings of connections, which are opened on
/// demand. Each statement borrows a connection and gives it back. In a [scope](cenote::scope())
/// the connection stays if it has an open transaction or a changed session, and the next statement
/// of that scope uses it again.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::Db;
///
/// let db = Db::sqlite("sqlite::memory:").max_size(1).build()?;
/// let sum: i64 = sqlx::query_scalar("SELECT 40 + ?").bind(2).fetch_one(&db).await?;
/// assert_eq!(sum, 42);
/// assert_eq!(db.pool().status().in_use, 0);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
pub struct Db<DB: Dialect> {
    pool: Pool<Sql<DB>>,
    /// How long calls wait for a connection, if not as long as the pool says.
    pub(crate) limit: Option<Duration>,
    pub(crate) sandbox: Option<Arc<Sandbox<DB>>>,
}

#[cfg(feature = "postgres")]
impl Db<sqlx::Postgres> {
    /// Builds a handle of PostgreSQL from a URL. The URL may have settings of the pool:
    /// `?cenote.max_size=20`.
    ///
    /// ```
    /// # #[cfg(feature = "postgres")] fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_sqlx::Db;
    ///
    /// let db = Db::postgres("postgres://app@localhost/shop?cenote.max_size=20").build()?;
    /// assert_eq!(db.pool().status().max_size, 20);
    /// let refused = Db::postgres("mysql://app@localhost/shop").build().unwrap_err();
    /// assert!(refused.to_string().contains("call `Db::mysql`"));
    /// # Ok(()) }
    /// # #[cfg(not(feature = "postgres"))] fn main() {}
    /// ```
    pub fn postgres(url: impl Into<String>) -> Builder<sqlx::Postgres> {
        Builder::from_url(url)
    }
}

#[cfg(feature = "mysql")]
impl Db<sqlx::MySql> {
    /// Builds a handle of MySQL or MariaDB from a URL. The URL may have settings of the pool:
    /// `?cenote.max_size=20`.
    ///
    /// ```
    /// # #[cfg(feature = "mysql")] fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_sqlx::Db;
    ///
    /// let db = Db::mysql("mysql://app@localhost/shop?cenote.max_size=20").build()?;
    /// assert_eq!(db.pool().status().max_size, 20);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "mysql"))] fn main() {}
    /// ```
    pub fn mysql(url: impl Into<String>) -> Builder<sqlx::MySql> {
        Builder::from_url(url)
    }
}

#[cfg(feature = "sqlite")]
impl Db<sqlx::Sqlite> {
    /// Builds a handle of SQLite from a URL. The URL may have settings of the pool:
    /// `?cenote.max_size=20`.
    ///
    /// Options that a URL cannot express are set for concurrency: WAL, a busy timeout of 5 s,
    /// foreign keys, and `synchronous = NORMAL`. [`with_options`](Db::with_options) changes no
    /// options.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_sqlx::Db;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let db = Db::sqlite(format!("sqlite://{}/shop.db?mode=rwc", folder.path().display())).build()?;
    /// let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&db).await?;
    /// assert_eq!(mode, "wal");
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn sqlite(url: impl Into<String>) -> Builder<sqlx::Sqlite> {
        Builder::from_url(url)
    }
}

impl<DB: Dialect> Db<DB> {
    pub(crate) fn new(pool: Pool<Sql<DB>>) -> Self {
        Self {
            pool,
            limit: None,
            sandbox: None,
        }
    }

    /// Builds a handle of the database `DB` from a URL, in generic code.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_sqlx::{BuildError, Db, Dialect};
    ///
    /// fn small<DB: Dialect>(url: &str) -> Result<Db<DB>, BuildError> {
    ///     Db::from_url(url).max_size(1).build()
    /// }
    ///
    /// let db: Db<sqlx::Sqlite> = small("sqlite::memory:")?;
    /// assert_eq!(db.pool().status().max_size, 1);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn from_url(url: impl Into<String>) -> Builder<DB> {
        Builder::from_url(url)
    }

    /// Builds a handle from sqlx's own options.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_sqlx::Db;
    /// use sqlx::sqlite::SqliteConnectOptions;
    ///
    /// let options = SqliteConnectOptions::new().in_memory(true);
    /// let db = Db::<sqlx::Sqlite>::with_options(options).max_size(1).build()?;
    /// let one: i64 = sqlx::query_scalar("SELECT 1").fetch_one(&db).await?;
    /// assert_eq!(one, 1);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn with_options(options: Options<DB>) -> Builder<DB> {
        Builder::from_options(options)
    }

    /// Returns the pool, for its status and its leases, and for `resize`, `invalidate` and `close`.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// let held = db.acquire().await?;
    /// assert_eq!(db.pool().leases().len(), 1);
    /// assert_eq!(db.pool().leases()[0].site.line(), line!() - 2);
    /// # drop(held);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn pool(&self) -> &Pool<Sql<DB>> {
        &self.pool
    }

    /// Opens connections until there are `max(min_size, min_idle, 1)`, or fails. After a success
    /// the server can be reached.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let url = format!("sqlite://{}/shop.db?mode=rwc", folder.path().display());
    /// let db = cenote_sqlx::Db::sqlite(url).min_idle(2).build()?;
    /// assert_eq!(db.pool().status().total, 0);
    /// db.warm().await?;
    /// assert_eq!(db.pool().status().idle, 2);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// Connections that are being opened when this future is dropped go to the pool.
    pub async fn warm(&self) -> Result<(), WarmError<Error>> {
        self.pool.warm().await
    }

    /// Closes the pool, and waits until all connections have come back and are closed. Callers
    /// that wait for a connection, and callers that come later, get [`Error::PoolClosed`].
    ///
    /// `db.pool().close_within(..)` has a limit, and returns the leases that are left.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// sqlx::query("SELECT 1").execute(&db).await?;
    /// db.close().await;
    /// assert_eq!(db.pool().status().total, 0);
    /// assert!(matches!(db.acquire().await, Err(sqlx::Error::PoolClosed)));
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// The first poll closes the pool. Dropping this future only stops the waiting.
    pub async fn close(&self) {
        self.pool.close_within(Duration::MAX).await;
    }

    /// Borrows a connection for several statements. Inside a transaction it is the connection of
    /// that transaction.
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
    /// Dropping this future gives up its place in the queue.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<Lease<DB>, Error>> + Send {
        self.acquire_at(Location::caller())
    }

    pub(crate) async fn acquire_at(
        &self,
        site: &'static Location<'static>,
    ) -> Result<Lease<DB>, Error> {
        let joined = self.join(site).await?;
        let mut lease = joined.confirm(self.bind(site, self.turn_at_once(false)).await?)?;
        // The lease gives access to the connection itself.
        let session = lease.session();
        if session.is_out_of_context() || session.is_out_of_date() {
            watched!(session, session.fit_caller())?;
        }
        Ok(lease)
    }

    /// Returns what `error` means for its connection and for the caller.
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

    /// Acquires a connection for a transaction.
    pub(crate) async fn acquire_for(
        &self,
        site: &'static Location<'static>,
        options: TransactionOptions,
    ) -> Result<Lease<DB>, Error> {
        options.check(DB::LANGUAGE)?;
        let mut lease = self
            .bind(site, self.turn_at_once(!options.read_only))
            .await?;
        lease.session_for("transaction");
        Ok(lease)
    }

    /// Acquires a connection for one statement. sqlx's own functions, which call this one for a
    /// query, do not know the line of their caller.
    pub(crate) async fn acquire_to(
        &self,
        site: &'static Location<'static>,
        sql: &str,
    ) -> Result<Lease<DB>, Error> {
        let site = match site.file().contains("sqlx-core") {
            true => UNKNOWN_SITE,
            false => site,
        };
        let reading = known::reading(DB::LANGUAGE, sql);
        if self.sandbox.is_none() {
            refusal::outside_a_scope(&reading, &self.pool.manager().template.reset, sql)?;
        }
        let joined = self.join(site).await?;
        let turn = self.turn(site, sql, &reading).await?;
        joined.confirm(self.bind(site, turn).await?)
    }

    /// Acquires a connection within the deadline of the whole call.
    pub(crate) async fn bind(
        &self,
        site: &'static Location<'static>,
        turn: Turn<'_, DB>,
    ) -> Result<Lease<DB>, Error> {
        let deadline = match self.limit {
            Some(_) => turn.deadline.or_else(|| self.deadline()),
            None => turn.deadline,
        };
        let binding = turn.pool.bind_at(site, deadline);
        let bound = match &self.sandbox {
            Some(sandbox) => sandbox.bind(binding).await,
            None => binding.await.map_err(from_bind),
        };
        let mut bound = bound?;
        if !Bound::is_pinned(&bound) {
            bound.meter.reset();
        }
        bound.right = turn.right.or_else(|| bound.right.take());
        Ok(Lease::new(bound, turn.apart))
    }
}

impl<DB: Dialect> Clone for Db<DB> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            limit: self.limit,
            sandbox: self.sandbox.clone(),
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
