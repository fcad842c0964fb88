//! A transaction that is passed along as an argument. The ambient one is in `ambient.rs`.

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use futures_core::future::BoxFuture;
use sqlx::{Acquire, Connection, Error};

use crate::db::Db;
use crate::dialect::Dialect;
use crate::known;
use crate::label::label;
use crate::lease::Lease;
use crate::lexer::Language;
use crate::session::Session;

/// How a transaction begins. A nested transaction takes no options.
///
/// ```
/// use cenote_sqlx::{Isolation, TransactionOptions};
///
/// let options = TransactionOptions::new().isolation(Isolation::Serializable).read_only();
/// assert_ne!(options, TransactionOptions::new());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionOptions {
    pub(crate) isolation: Option<Isolation>,
    pub(crate) read_only: bool,
    /// Whether it may write, even if the default of the database is that it may not.
    pub(crate) read_write: bool,
    pub(crate) refuse_late: bool,
    pub(crate) text: Option<&'static str>,
}

impl TransactionOptions {
    /// The defaults of the database.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the isolation level. SQLite is always serializable.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// Refuses statements that write.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Returns whether [`read_only`](TransactionOptions::read_only) was called.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Refuses statements in the scope of the transaction after its end. Such a statement comes
    /// from a task that got the scope and outlives the transaction. Without this it runs and is
    /// committed by itself. It counts for transactions with a scope, not for
    /// [`begin_with`](Db::begin_with).
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// use cenote::scope::Scope;
    /// use cenote_sqlx::TransactionOptions;
    ///
    /// let options = TransactionOptions::new().refuse_late();
    /// let work = async || Ok::<_, sqlx::Error>(Scope::current());
    /// let scope = db.transaction_with(options, work).await?;
    /// let late = scope.unwrap().run(async { sqlx::query("SELECT 1").execute(&db).await });
    /// assert!(late.await.unwrap_err().to_string().contains("is over"));
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn refuse_late(mut self) -> Self {
        self.refuse_late = true;
        self
    }

    /// Returns whether it says how the transaction begins. A savepoint cannot.
    pub(crate) fn is_special(&self) -> bool {
        self.isolation.is_some() || self.read_only || self.text.is_some()
    }

    /// Refuses a text that does more or less than to begin a transaction.
    pub(crate) fn check(&self, language: Language) -> Result<(), Error> {
        let Some(text) = self.text else {
            return Ok(());
        };
        let reading = known::reading(language, text);
        if reading.statements == 1 && reading.begins_for_good() {
            return Ok(());
        }
        Err(Error::InvalidArgument(format!(
            "`{}` is not one statement that begins a transaction, like `BEGIN READ ONLY`",
            label(text)
        )))
    }
}

/// A statement that begins the transaction, for what the options cannot say: `BEGIN ISOLATION LEVEL
/// SERIALIZABLE, READ ONLY, DEFERRABLE` or `START TRANSACTION WITH CONSISTENT SNAPSHOT`. A text
/// that does not begin a transaction is an error of the call that gets it. In a sandbox, where the
/// transaction is a savepoint, it has no effect.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
/// db.begin_with("BEGIN EXCLUSIVE").await?.commit().await?;
/// assert!(db.begin_with("SELECT 1").await.is_err());
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
impl From<&'static str> for TransactionOptions {
    fn from(text: &'static str) -> Self {
        Self {
            text: Some(text),
            ..Self::default()
        }
    }
}

/// How far transactions are isolated from each other.
///
/// ```
/// use cenote_sqlx::Isolation;
///
/// assert_eq!(Isolation::RepeatableRead.sql(), "REPEATABLE READ");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A statement may see changes that are not committed, if the database allows it.
    ReadUncommitted,
    /// Each statement sees the changes that were committed before it.
    ReadCommitted,
    /// All statements see one state of the database.
    RepeatableRead,
    /// The result is as if the transactions ran one after the other.
    Serializable,
}

impl Isolation {
    /// Returns the name in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "READ UNCOMMITTED",
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

/// An open transaction, with its connection. It can be moved to another task. If it is dropped
/// without a [`commit`](Transaction::commit), it is rolled back before the connection is used
/// again.
///
/// `&mut transaction` is an `Executor`.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
/// let mut transaction = db.begin().await?;
/// sqlx::query("CREATE TABLE t (a INTEGER)").execute(&mut transaction).await?;
/// let mut savepoint = transaction.begin().await?;
/// sqlx::query("INSERT INTO t VALUES (1)").execute(&mut savepoint).await?;
/// savepoint.rollback().await?;
/// sqlx::query("INSERT INTO t VALUES (2)").execute(&mut transaction).await?;
/// transaction.commit().await?;
///
/// let rows: Vec<i64> = sqlx::query_scalar("SELECT a FROM t").fetch_all(&db).await?;
/// assert_eq!(rows, [2]);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
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

impl<DB: Dialect> Db<DB> {
    /// Begins a transaction that is passed along as an argument: `&mut transaction` is the
    /// executor. Inside a transaction it is a savepoint, and other statements of the outer
    /// transaction wait until it has ended.
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
    /// Dropping this future leaves no transaction open.
    #[track_caller]
    pub fn begin(&self) -> impl Future<Output = Result<Transaction<'static, DB>, Error>> + Send {
        self.begin_with(TransactionOptions::new())
    }

    /// Begins a transaction with options, or with a text like `BEGIN READ ONLY, DEFERRABLE`. All
    /// else is as in [`begin`](Db::begin).
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// use cenote_sqlx::TransactionOptions;
    ///
    /// let mut reading = db.begin_with(TransactionOptions::new().read_only()).await?;
    /// assert!(sqlx::query("CREATE TABLE t (a INTEGER)").execute(&mut reading).await.is_err());
    /// reading.rollback().await?;
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// As [`begin`](Db::begin).
    #[track_caller]
    pub fn begin_with(
        &self,
        options: impl Into<TransactionOptions>,
    ) -> impl Future<Output = Result<Transaction<'static, DB>, Error>> + Send {
        self.begin_at(Location::caller(), options.into())
    }

    /// As [`begin_with`](Db::begin_with), for a caller at `site`.
    pub(crate) async fn begin_at(
        &self,
        site: &'static Location<'static>,
        options: TransactionOptions,
    ) -> Result<Transaction<'static, DB>, Error> {
        let joined = self.join(site).await?;
        let lease = joined.confirm(self.acquire_for(site, options).await?)?;
        Transaction::own(lease, &options).await
    }
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
    /// Commits the transaction and gives the connection back.
    ///
    /// # Cancel safety
    /// If this future is dropped, the transaction may be committed or rolled back.
    pub async fn commit(mut self) -> Result<(), Error> {
        let depth = self.depth;
        self.lease().session().commit(depth).await?;
        self.held = Held::Over;
        Ok(())
    }

    /// Rolls the transaction back and gives the connection back.
    ///
    /// # Cancel safety
    /// If this future is dropped, the transaction is rolled back before the connection is used
    /// again.
    pub async fn rollback(mut self) -> Result<(), Error> {
        let depth = self.depth;
        self.lease().session().roll_back(depth).await?;
        self.held = Held::Over;
        Ok(())
    }

    /// Begins a transaction inside this one: a savepoint.
    ///
    /// # Cancel safety
    /// If this future is dropped, the outer transaction may be lost. Then its commit is an error.
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
            Held::Over => unreachable!("bug: a transaction is used after its end"),
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
            Held::Over => unreachable!("bug: a transaction is used after its end"),
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
