//! The handle: an `Executor` that all tasks share. It borrows a connection for each statement.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use cenote::scope::{BindError, Scope};
use cenote::status::UNKNOWN_SITE;
use cenote::{Pool, WarmError};
use sqlx::Error;

use crate::builder::Builder;
use crate::dialect::{Dialect, Options};
use crate::error::{Class, from_bind};
use crate::known;
use crate::label;
use crate::lease::Lease;
use crate::manager::Sql;
use crate::reading::Access;
use crate::refusal;
use crate::sandbox::Sandbox;
use crate::transaction::TransactionOptions;
use crate::writer::{Turn, Writer};

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
    writers: Option<Pool<Writer>>,
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
    /// assert!(refused.to_string().contains("`postgres://`"));
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
    pub(crate) fn new(pool: Pool<Sql<DB>>, writers: Option<Pool<Writer>>) -> Self {
        Self {
            pool,
            writers,
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
        if let Some(writers) = &self.writers {
            writers.close();
        }
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
        let site = Location::caller();
        async move {
            let joined = self.join(site).await?;
            let mut lease = joined.confirm(self.bind(site, Turn::default()).await?)?;
            // The lease gives access to the connection itself.
            if lease.session().is_out_of_context() {
                lease.session().make_ready().await?;
                lease.session().fit_context().await?;
            }
            Ok(lease)
        }
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
        let turn = match options.read_only {
            true => Turn::default(),
            false => self.turn_to_write(site, "transaction").await?,
        };
        self.bind(site, turn).await
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
        let turn = match self.writers.is_some() && reading.access == Access::Writes {
            true => self.turn_to_write(site, sql).await?,
            false => Turn::default(),
        };
        joined.confirm(self.bind(site, turn).await?)
    }

    /// Waits for the right to write, if the database has one writer at a time. A scope that holds a
    /// connection does not wait, because the current writer may wait for that connection.
    async fn turn_to_write(
        &self,
        site: &'static Location<'static>,
        sql: &str,
    ) -> Result<Turn, Error> {
        let Some(writers) = &self.writers else {
            return Ok(Turn::default());
        };
        if Scope::current().is_some_and(|scope| scope.is_pinned(&self.pool)) {
            return Ok(Turn::default());
        }
        let deadline = self.pool.deadline();
        let writer = writers.acquire_at(site, deadline).await;
        let writer = writer.map_err(|error| from_bind(BindError::Acquire(error)))?;
        cenote::Lease::label(&writer, label::in_scope(sql));
        Ok(Turn {
            writer: Some(writer),
            deadline,
        })
    }

    /// Acquires a connection within the deadline of the whole call.
    async fn bind(&self, site: &'static Location<'static>, turn: Turn) -> Result<Lease<DB>, Error> {
        let binding = self.pool.bind_at(site, turn.deadline);
        let bound = match &self.sandbox {
            Some(sandbox) => sandbox.bind(binding).await,
            None => binding.await.map_err(from_bind),
        };
        let mut bound = bound?;
        bound.state.writer = turn.writer.or_else(|| bound.state.writer.take());
        Ok(Lease::new(bound))
    }
}

impl<DB: Dialect> Clone for Db<DB> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            writers: self.writers.clone(),
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
