//! The handle: leases, and statements without a lease.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::Location;

use cenote::scope::Bound;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::builder::Builder;
use crate::config::Config;
use crate::error::Error;
use crate::manager::Postgres;

/// Why a transaction cannot go on.
pub(crate) const DOOMED: &str =
    "the connection broke, or a transaction inside was dropped while it was in use";

/// A connection that is lent. It dereferences to its [`Session`](crate::Session), and goes back
/// when it is dropped. `cenote::Lease::label(&lease, …)` and the other functions of a lease work,
/// too.
pub type Lease = Bound<Postgres>;

/// A pool of connections to one database. It is a cheap handle: clone it and share it.
///
/// It dereferences to [`cenote::Pool`], for `status`, `leases`, `warm`, `resize`, `invalidate`,
/// `close_within` and all else.
///
/// Statements of the pool itself take a connection for their own time, or the one of the
/// [transaction](Pool::transaction) or [scope](cenote::scope()) that the caller is in. Their texts
/// are prepared once per connection, and cached.
///
/// ```no_run
/// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_postgres::Pool;
///
/// let pool = Pool::from_url("postgres://app@localhost/shop").max_size(20).build()?;
/// let row = pool.query_one("select count(*) from cart where owner = $1", &[&7]).await?;
/// let carts: i64 = row.get(0);
/// assert_eq!(pool.status().idle, 1);
/// # let _ = carts;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Pool {
    pool: cenote::Pool<Postgres>,
}

impl Pool {
    pub(crate) fn new(pool: cenote::Pool<Postgres>) -> Self {
        Self { pool }
    }

    /// Begins to build a pool from a URL, or from a text like `host=localhost user=app`. The driver
    /// documents [both](tokio_postgres::Config).
    pub fn from_url(url: impl Into<String>) -> Builder {
        Builder::from_url(url.into())
    }

    /// Begins to build a pool from the driver's own options.
    ///
    /// ```
    /// use cenote_postgres::{Pool, tokio_postgres};
    ///
    /// let mut options = tokio_postgres::Config::new();
    /// options.host("localhost").user("app").dbname("shop");
    /// let pool = Pool::with_options(options).build()?;
    /// assert_eq!(pool.status().opened, 0);
    /// # Ok::<_, cenote_postgres::BuildError>(())
    /// ```
    pub fn with_options(options: tokio_postgres::Config) -> Builder {
        Builder::with_options(options)
    }

    /// Begins to build a pool from settings that were read from a file.
    pub fn from_config(config: Config) -> Builder {
        config.into_builder()
    }

    /// Lends a connection for several statements, within the pool's `acquire_timeout`. Inside a
    /// transaction of this pool it is the connection of that transaction.
    ///
    /// # Cancel safety
    /// Dropping this future gives up its place in the queue.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<Lease, Error>> + Send {
        self.lease_at(Location::caller())
    }

    /// Runs a statement, and returns its rows.
    ///
    /// # Cancel safety
    /// Dropping this future cancels the statement on the server, unless the caller is in a
    /// transaction. The statement may have taken effect.
    #[track_caller]
    pub fn query(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<Vec<Row>, Error>> + Send {
        let site = Location::caller();
        async move {
            let lease = self.lease_at(site).await?;
            let statement = lease.prepare_cached(sql).await?;
            Ok(lease.query(&statement, params).await?)
        }
    }

    /// Runs a statement that returns one row. Another number of rows is an error.
    ///
    /// # Cancel safety
    /// As [`query`](Pool::query).
    #[track_caller]
    pub fn query_one(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<Row, Error>> + Send {
        let site = Location::caller();
        async move {
            let lease = self.lease_at(site).await?;
            let statement = lease.prepare_cached(sql).await?;
            Ok(lease.query_one(&statement, params).await?)
        }
    }

    /// Runs a statement that returns one row or none. More rows are an error.
    ///
    /// # Cancel safety
    /// As [`query`](Pool::query).
    #[track_caller]
    pub fn query_opt(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<Option<Row>, Error>> + Send {
        let site = Location::caller();
        async move {
            let lease = self.lease_at(site).await?;
            let statement = lease.prepare_cached(sql).await?;
            Ok(lease.query_opt(&statement, params).await?)
        }
    }

    /// Runs a statement, and returns the number of rows that it changed.
    ///
    /// # Cancel safety
    /// As [`query`](Pool::query).
    #[track_caller]
    pub fn execute(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> impl Future<Output = Result<u64, Error>> + Send {
        let site = Location::caller();
        async move {
            let lease = self.lease_at(site).await?;
            let statement = lease.prepare_cached(sql).await?;
            Ok(lease.execute(&statement, params).await?)
        }
    }

    /// Runs several statements without parameters. They are not cached.
    ///
    /// # Cancel safety
    /// As [`query`](Pool::query).
    #[track_caller]
    pub fn batch_execute(&self, sql: &str) -> impl Future<Output = Result<(), Error>> + Send {
        let site = Location::caller();
        async move {
            let lease = self.lease_at(site).await?;
            Ok(lease.batch_execute(sql).await?)
        }
    }

    /// Lends a connection that is quiet.
    pub(crate) async fn lease_at(&self, site: &'static Location<'static>) -> Result<Lease, Error> {
        let lease = self.pool.bind_at(site, None).await?;
        if lease.state.is_doomed() {
            return Err(Error::lost(DOOMED));
        }
        // Only a lease of a transaction or a scope can have a statement under way. Boxed, because
        // it is rare and its future is large.
        if lease.state.is_interrupted() {
            Box::pin(lease.settle()).await?;
        }
        Ok(lease)
    }
}

impl Deref for Pool {
    type Target = cenote::Pool<Postgres>;

    fn deref(&self) -> &cenote::Pool<Postgres> {
        &self.pool
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}
