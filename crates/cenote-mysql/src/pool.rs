//! The handle: leases, and statements without a lease.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::Location;

use cenote::scope::Bound;
use mysql_async::prelude::{AsQuery, FromRow, Queryable, StatementLike};
use mysql_async::{Opts, Params};

use crate::builder::Builder;
use crate::config::Config;
use crate::error::Error;
use crate::manager::Mysql;

/// A connection that is lent. It dereferences to its [`Session`](crate::Session), and goes back
/// when it is dropped. `cenote::Lease::label(&lease, …)` and the other functions of a lease work,
/// too.
pub type Lease = Bound<Mysql>;

/// A pool of connections to one database. It is a cheap handle: clone it and share it.
///
/// It dereferences to [`cenote::Pool`], for `status`, `leases`, `warm`, `resize`, `invalidate`,
/// `close_within` and all else.
///
/// Statements of the pool itself take a connection for their own time, or the one of the
/// [transaction](Pool::transaction) that the caller is in. Their names and arguments are those of
/// the driver's [`Queryable`].
///
/// ```no_run
/// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_mysql::Pool;
///
/// let pool = Pool::from_url("mysql://app@localhost/shop").max_size(20).build()?;
/// let carts: Option<u64> = pool.exec_first("SELECT COUNT(*) FROM cart WHERE owner = ?", (7,)).await?;
/// assert_eq!(pool.status().in_use, 0);
/// # let _ = carts;
/// # Ok(()) }
/// ```
///
/// # Panics
/// As in the driver, a function that returns rows panics if a row does not fit the type. Ask for
/// `mysql_async::Row` where that can happen.
#[derive(Clone)]
pub struct Pool {
    pool: cenote::Pool<Mysql>,
}

impl Pool {
    pub(crate) fn new(pool: cenote::Pool<Mysql>) -> Self {
        Self { pool }
    }

    /// Begins to build a pool from a URL like `mysql://user:password@host:3306/database`. The
    /// driver documents the [parameters](mysql_async::Opts).
    pub fn from_url(url: impl Into<String>) -> Builder {
        Builder::from_url(url.into())
    }

    /// Begins to build a pool from the driver's own options.
    ///
    /// ```
    /// use cenote_mysql::Pool;
    /// use cenote_mysql::mysql_async::OptsBuilder;
    ///
    /// let options = OptsBuilder::default().ip_or_hostname("localhost").user(Some("app"));
    /// let pool = Pool::with_options(options).build()?;
    /// assert_eq!(pool.status().opened, 0);
    /// # Ok::<_, cenote_mysql::BuildError>(())
    /// ```
    pub fn with_options(options: impl Into<Opts>) -> Builder {
        Builder::with_options(options.into())
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

    /// Runs statements without parameters, and returns the rows of the first.
    ///
    /// # Cancel safety
    /// Dropping this future kills the statement on the server and closes its connection. The
    /// statement may have taken effect.
    #[track_caller]
    pub fn query<T, Q>(&self, query: Q) -> impl Future<Output = Result<Vec<T>, Error>> + Send
    where
        T: FromRow + Send + 'static,
        Q: AsQuery,
    {
        let leasing = self.lease_at(Location::caller());
        async move { Ok(leasing.await?.query(query).await?) }
    }

    /// Runs statements without parameters, and returns the first row of the first.
    ///
    /// # Cancel safety
    /// As [`query`](Pool::query).
    #[track_caller]
    pub fn query_first<T, Q>(
        &self,
        query: Q,
    ) -> impl Future<Output = Result<Option<T>, Error>> + Send
    where
        T: FromRow + Send + 'static,
        Q: AsQuery,
    {
        let leasing = self.lease_at(Location::caller());
        async move { Ok(leasing.await?.query_first(query).await?) }
    }

    /// Runs statements without parameters, and skips their rows.
    ///
    /// # Cancel safety
    /// As [`query`](Pool::query).
    #[track_caller]
    pub fn query_drop<Q>(&self, query: Q) -> impl Future<Output = Result<(), Error>> + Send
    where
        Q: AsQuery,
    {
        let leasing = self.lease_at(Location::caller());
        async move { Ok(leasing.await?.query_drop(query).await?) }
    }

    /// Runs a prepared statement, and returns its rows.
    ///
    /// # Cancel safety
    /// As [`query`](Pool::query).
    #[track_caller]
    pub fn exec<T, S, P>(
        &self,
        statement: S,
        params: P,
    ) -> impl Future<Output = Result<Vec<T>, Error>> + Send
    where
        T: FromRow + Send + 'static,
        S: StatementLike,
        P: Into<Params> + Send,
    {
        let leasing = self.lease_at(Location::caller());
        async move { Ok(leasing.await?.exec(statement, params).await?) }
    }

    /// Runs a prepared statement, and returns its first row.
    ///
    /// # Cancel safety
    /// As [`query`](Pool::query).
    #[track_caller]
    pub fn exec_first<T, S, P>(
        &self,
        statement: S,
        params: P,
    ) -> impl Future<Output = Result<Option<T>, Error>> + Send
    where
        T: FromRow + Send + 'static,
        S: StatementLike,
        P: Into<Params> + Send,
    {
        let leasing = self.lease_at(Location::caller());
        async move { Ok(leasing.await?.exec_first(statement, params).await?) }
    }

    /// Runs a prepared statement, and returns the number of rows that it changed.
    ///
    /// # Cancel safety
    /// As [`query`](Pool::query).
    #[track_caller]
    pub fn exec_drop<S, P>(
        &self,
        statement: S,
        params: P,
    ) -> impl Future<Output = Result<u64, Error>> + Send
    where
        S: StatementLike,
        P: Into<Params> + Send,
    {
        let leasing = self.lease_at(Location::caller());
        async move {
            let mut lease = leasing.await?;
            lease.exec_drop(statement, params).await?;
            Ok(lease.affected_rows())
        }
    }

    pub(crate) fn lease_at(
        &self,
        site: &'static Location<'static>,
    ) -> impl Future<Output = Result<Lease, Error>> + Send {
        let binding = self.pool.bind_at(site, None);
        async move {
            let lease = binding.await?;
            match lease.is_over() {
                true => Err(Error::lost("the transaction around lost its connection")),
                false => Ok(lease),
            }
        }
    }
}

impl Deref for Pool {
    type Target = cenote::Pool<Mysql>;

    fn deref(&self) -> &cenote::Pool<Mysql> {
        &self.pool
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}
