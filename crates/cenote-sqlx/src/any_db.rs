//! A database that is chosen at run time, by its URL.

use std::future::Future;

use cenote::{Config, Health, Holder, Status, WarmError};
use sqlx::{Error, SqlSafeStr};

use crate::build_error::BuildError;
use crate::db::Db;
use crate::dialect::Dialect;
use crate::transaction::TransactionOptions;
use crate::url;

/// A [`Db`] of a database that the URL chooses when the program runs.
///
/// It is for programs that an operator points at one of several databases. It has what is the same
/// on all of them: the pool, transactions, and texts without parameters and rows. Parameters are
/// written differently in each database, and rows have types of their own. So a query with either
/// is written once for each database, in a `match`.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::AnyDb;
///
/// let db = AnyDb::from_url("sqlite::memory:?cenote.max_size=1")?;
/// db.transaction(async || {
///     db.execute("CREATE TABLE orders (item TEXT)").await?;
///     db.execute("INSERT INTO orders VALUES ('a chair')").await
/// })
/// .await?;
///
/// let items: Vec<String> = match &db {
///     AnyDb::Sqlite(db) => sqlx::query_scalar("SELECT item FROM orders").fetch_all(db).await?,
///     other => panic!("a query for {} is missing", other.database()),
/// };
/// assert_eq!(items, ["a chair"]);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyDb {
    /// PostgreSQL.
    #[cfg(feature = "postgres")]
    Postgres(Db<sqlx::Postgres>),
    /// MySQL or MariaDB.
    #[cfg(feature = "mysql")]
    MySql(Db<sqlx::MySql>),
    /// SQLite.
    #[cfg(feature = "sqlite")]
    Sqlite(Db<sqlx::Sqlite>),
}

/// Calls the same code with the handle of each database.
macro_rules! each {
    ($any:expr, $db:ident => $code:expr) => {
        match $any {
            #[cfg(feature = "postgres")]
            AnyDb::Postgres($db) => $code,
            #[cfg(feature = "mysql")]
            AnyDb::MySql($db) => $code,
            #[cfg(feature = "sqlite")]
            AnyDb::Sqlite($db) => $code,
        }
    };
}
#[cfg(feature = "sea-orm")]
pub(crate) use each;

impl AnyDb {
    /// Builds the handle of the database that the scheme of the URL names: `postgres://`,
    /// `mysql://`, `mariadb://` or `sqlite:`. The URL may have settings of the pool.
    ///
    /// ```
    /// # #[cfg(all(feature = "postgres", feature = "mysql"))]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_sqlx::AnyDb;
    ///
    /// let db = AnyDb::from_url("postgres://app@localhost/shop?cenote.max_size=20")?;
    /// assert_eq!((db.database(), db.status().max_size), ("PostgreSQL", 20));
    /// assert_eq!(AnyDb::from_url("mariadb://app@localhost/shop")?.database(), "MySQL");
    /// assert!(AnyDb::from_url("oracle://localhost").is_err());
    /// # Ok(()) }
    /// # #[cfg(not(all(feature = "postgres", feature = "mysql")))] fn main() {}
    /// ```
    pub fn from_url(url: impl Into<String>) -> Result<Self, BuildError> {
        Self::with_config(url, Config::default())
    }

    /// As [`from_url`](AnyDb::from_url), with settings of the pool. Settings in the URL override
    /// them.
    pub fn with_config(url: impl Into<String>, config: Config) -> Result<Self, BuildError> {
        let url = url.into();
        #[cfg(feature = "postgres")]
        if is_for::<sqlx::Postgres>(&url) {
            return Ok(Self::Postgres(build(url, config)?));
        }
        #[cfg(feature = "mysql")]
        if is_for::<sqlx::MySql>(&url) {
            return Ok(Self::MySql(build(url, config)?));
        }
        #[cfg(feature = "sqlite")]
        if is_for::<sqlx::Sqlite>(&url) {
            return Ok(Self::Sqlite(build(url, config)?));
        }
        let _ = config;
        Err(BuildError::UnknownScheme {
            found: url::scheme(&url).unwrap_or_default().to_owned(),
            expected: EXPECTED,
        })
    }

    /// Returns the name of the database.
    pub fn database(&self) -> &'static str {
        each!(self, db => name_of(db))
    }

    /// Returns the status of the pool.
    pub fn status(&self) -> Status {
        each!(self, db => db.pool().status())
    }

    /// Returns the verdict on the pool, for a readiness probe.
    pub fn health(&self) -> Health {
        each!(self, db => db.pool().health())
    }

    /// Returns who holds connections, the longest first.
    pub fn leases(&self) -> Vec<Holder> {
        each!(self, db => db.pool().leases())
    }

    /// As [`Db::warm`].
    ///
    /// # Cancel safety
    /// As [`Db::warm`].
    pub async fn warm(&self) -> Result<(), WarmError<Error>> {
        each!(self, db => db.warm().await)
    }

    /// As [`Db::close`].
    ///
    /// # Cancel safety
    /// As [`Db::close`].
    pub async fn close(&self) {
        each!(self, db => db.close().await)
    }

    /// Runs a text without parameters, and returns the number of rows that it has changed. The text
    /// may have several statements. In a transaction it is part of that.
    ///
    /// # Cancel safety
    /// As any statement through a [`Db`].
    pub async fn execute(&self, sql: impl SqlSafeStr) -> Result<u64, Error> {
        let sql = sqlx::raw_sql(sql.into_sql_str());
        each!(self, db => sql.execute(db).await.map(|done| done.rows_affected()))
    }

    /// As [`Db::transaction`]: every statement through this handle in `work` is part of it.
    ///
    /// # Cancel safety
    /// As [`Db::transaction`].
    #[track_caller]
    pub fn transaction<F, Fut, T, E>(&self, work: F) -> impl Future<Output = Result<T, E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let site = std::panic::Location::caller();
        let options = TransactionOptions::new();
        async move { each!(self, db => db.transaction_at(site, options, work).await) }
    }

    /// As [`Db::in_transaction`].
    pub fn in_transaction(&self) -> bool {
        each!(self, db => db.in_transaction())
    }
}

/// The schemes of the databases that are enabled.
const EXPECTED: &[&str] = &[
    #[cfg(feature = "postgres")]
    "postgres://",
    #[cfg(feature = "mysql")]
    "mysql://",
    #[cfg(feature = "sqlite")]
    "sqlite:",
];

/// Returns whether the URL is one of this database.
fn is_for<DB: Dialect>(url: &str) -> bool {
    url::scheme(url).is_some_and(|scheme| DB::URL_SCHEMES.contains(&scheme))
}

fn build<DB: Dialect>(url: String, config: Config) -> Result<Db<DB>, BuildError> {
    Db::from_url(url).config(config).build()
}

fn name_of<DB: Dialect>(_: &Db<DB>) -> &'static str {
    DB::NAME
}

macro_rules! from {
    ($feature:literal, $variant:ident) => {
        #[cfg(feature = $feature)]
        impl From<Db<sqlx::$variant>> for AnyDb {
            fn from(db: Db<sqlx::$variant>) -> Self {
                Self::$variant(db)
            }
        }
    };
}

from!("postgres", Postgres);
from!("mysql", MySql);
from!("sqlite", Sqlite);
