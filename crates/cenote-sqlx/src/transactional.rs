//! The functions and traits that the expansion of `#[transactional]` uses.

mod again;
#[cfg(feature = "http")]
mod http;
#[cfg(all(doctest, feature = "sqlite"))]
mod misuse;

use std::future::Future;
use std::sync::Arc;

use sqlx::Error;

use crate::db::Db;
use crate::dialect::Dialect;
use crate::transaction::TransactionOptions;

pub use self::again::{Tries, rest};

/// Runs an `async fn` in a transaction, which is committed after a success, and rolled back after
/// an error, an error status, a panic or a drop.
///
/// As in [`Db::transaction`], every `&db` of this database in the body, and in the functions that
/// it calls, is part of the transaction.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::{Db, transactional};
/// use sqlx::Sqlite;
///
/// #[transactional]
/// async fn transfer(db: &Db<Sqlite>, from: i64, to: i64, amount: i64) -> Result<(), sqlx::Error> {
///     add(db, to, amount).await?;
///     add(db, from, -amount).await // an error here undoes both
/// }
///
/// /// Is part of the transaction of its caller, if there is one.
/// async fn add(db: &Db<Sqlite>, account: i64, amount: i64) -> Result<(), sqlx::Error> {
///     let add = sqlx::query("UPDATE accounts SET amount = amount + ? WHERE id = ?");
///     add.bind(amount).bind(account).execute(db).await.map(drop)
/// }
///
/// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
/// sqlx::raw_sql(
///     "CREATE TABLE accounts (id INTEGER, amount INTEGER CHECK (amount >= 0));
///      INSERT INTO accounts VALUES (1, 10), (2, 0)",
/// ).execute(&db).await?;
/// transfer(&db, 1, 2, 7).await?;
/// assert!(transfer(&db, 1, 2, 7).await.is_err());
/// let amounts: Vec<i64> = sqlx::query_scalar("SELECT amount FROM accounts").fetch_all(&db).await?;
/// assert_eq!(amounts, [3, 7]);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
///
/// # The database
/// The database is an expression over the arguments: `#[transactional(db)]`,
/// `#[transactional(self.db)]`, `#[transactional(app.db)]`. Without an expression it is the one
/// argument whose type is called `Db`, else the argument that is called `db`, else the only
/// argument. In the last two cases the type may be an alias of `Db<..>`.
///
/// # Options
///
/// | option | |
/// |---|---|
/// | `read_only` | statements that write are refused |
/// | `isolation = Serializable` | or another variant of [`Isolation`](crate::Isolation) |
/// | `retry` | runs the whole function again after a conflict (serialization failure, deadlock), as [`Retry::default`](crate::Retry) says |
/// | `retry = ..` | runs it again as this [`Retry`](crate::Retry) says |
/// | `nested = savepoint` | inside a transaction of this database, a failure undoes the part of this function (the default) |
/// | `nested = join` | inside a transaction of this database, the function runs as if the attribute were not there. A failure undoes nothing by itself: return the error to the outer function |
///
/// A nested function ignores the first two options and is tried once: the outermost function
/// decides.
///
/// # The return type
/// The function returns a `Result<T, E>` with `E: From<sqlx::Error>`, because a begin or a commit
/// can fail. Such a failure becomes the error of the function, and its success is dropped. A
/// rollback that fails does not hide the error that led to it. An `Ok` can roll back too: see
/// [`Reply`].
///
/// With the feature `http` of cenote-sqlx an error status, 4xx or 5xx, rolls back. The function may
/// return an `http::Response`, an `http::StatusCode` or `impl IntoResponse`, alone or in an `Ok`,
/// or an `Ok` with a tuple that begins with a status. A failed transaction is a 500, or a 503 with
/// `Retry-After` if the pool had no connection to lend or another transaction was in conflict. So
/// handlers of axum can be transactional.
///
/// ```
/// # #[cfg(all(feature = "http", feature = "sqlite"))]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use cenote_sqlx::{Db, transactional};
/// # use sqlx::Sqlite;
/// use http::StatusCode;
///
/// #[transactional]
/// async fn create(db: &Db<Sqlite>, name: &str) -> Result<(StatusCode, String), sqlx::Error> {
///     sqlx::query("INSERT INTO people (name) VALUES (?)").bind(name).execute(db).await?;
///     if name.is_empty() {
///         return Ok((StatusCode::UNPROCESSABLE_ENTITY, "a name, please".into())); // rolls back
///     }
///     Ok((StatusCode::CREATED, format!("welcome, {name}")))
/// }
///
/// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
/// sqlx::query("CREATE TABLE people (name TEXT)").execute(&db).await?;
/// assert_eq!(create(&db, "Ada").await?.0, StatusCode::CREATED);
/// assert_eq!(create(&db, "").await?.0, StatusCode::UNPROCESSABLE_ENTITY);
/// let names: Vec<String> = sqlx::query_scalar("SELECT name FROM people").fetch_all(&db).await?;
/// assert_eq!(names, ["Ada"]);
/// # Ok(()) }
/// # #[cfg(not(all(feature = "http", feature = "sqlite")))] fn main() {}
/// ```
///
/// # A body that may run again
/// With `retry` the body borrows the arguments, so it must clone an argument that it would move. A
/// `mut` argument must be `Clone`, and each try gets a fresh copy. Changes behind a `&mut` argument
/// or outside the database are not undone. `E` is a `std::error::Error`, a boxed one, or like
/// `anyhow::Error`; the conflict is `E` itself or one of its sources.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use cenote_sqlx::{Db, Retry, transactional};
/// #[transactional(isolation = Serializable, retry = Retry { attempts: 9, ..Retry::default() })]
/// async fn insert(db: &Db<sqlx::Sqlite>, text: String) -> Result<(), sqlx::Error> {
///     let insert = sqlx::query("INSERT INTO t VALUES (?)");
///     insert.bind(text.clone()).execute(db).await.map(drop)
/// }
///
/// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
/// sqlx::query("CREATE TABLE t (a TEXT)").execute(&db).await?;
/// insert(&db, "one".into()).await?;
/// let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM t").fetch_one(&db).await?;
/// assert_eq!(rows, 1);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
///
/// # Cancel safety
/// Dropping the future drops the body and rolls back. If it is dropped during the commit, the
/// transaction may be committed or rolled back.
#[doc(inline)]
pub use cenote_macros::transactional;

/// The return type of a [`transactional`](crate::transactional) function: it decides between commit
/// and rollback, and can be made from the error of a failed transaction.
///
/// A `Result` is an outcome if its error implements `From<sqlx::Error>`. With the feature `http`, a
/// response and a status are outcomes too: see [`Reply`].
///
/// ```
/// use cenote_sqlx::Outcome;
///
/// let failed = <Result<(), sqlx::Error>>::failed(sqlx::Error::PoolClosed);
/// assert!(!failed.commits());
/// assert!(Ok::<_, sqlx::Error>("done").commits());
/// ```
#[diagnostic::on_unimplemented(
    message = "a transactional function cannot return `{Self}`: it cannot express that the transaction failed",
    label = "not an `Outcome`",
    note = "return `Result<T, E>` with `E: From<sqlx::Error>`",
    note = "or an HTTP response: `http::Response<B>`, with the feature `http` of cenote-sqlx"
)]
pub trait Outcome {
    /// Returns whether the transaction is committed.
    fn commits(&self) -> bool;

    /// Returns the value of a function whose transaction could not begin or be committed.
    fn failed(error: Error) -> Self;
}

impl<T, E: From<Error>> Outcome for Result<T, E> {
    fn commits(&self) -> bool {
        self.is_ok()
    }

    fn failed(error: Error) -> Self {
        Err(error.into())
    }
}

/// A success that may still roll back: an `Ok` of it rolls back if it
/// [is an error](Reply::is_error).
///
/// With the feature `http`, a response, a status and a tuple that begins with a status are replies.
/// The statuses 4xx and 5xx are errors.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::{Db, Reply, transactional};
///
/// #[derive(Debug, PartialEq)]
/// enum Order { Placed, SoldOut }
///
/// impl Reply for Order {
///     fn is_error(&self) -> bool { *self == Self::SoldOut }
/// }
///
/// #[transactional]
/// async fn order(db: &Db<sqlx::Sqlite>, pieces: i64) -> Result<Order, sqlx::Error> {
///     let take = sqlx::query_scalar("UPDATE stock SET left = left - ? RETURNING left");
///     let left: i64 = take.bind(pieces).fetch_one(db).await?;
///     Ok(if left < 0 { Order::SoldOut } else { Order::Placed })
/// }
///
/// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
/// sqlx::raw_sql("CREATE TABLE stock (left INTEGER); INSERT INTO stock VALUES (3)").execute(&db).await?;
/// assert_eq!(order(&db, 2).await?, Order::Placed);
/// assert_eq!(order(&db, 2).await?, Order::SoldOut);
/// let left: i64 = sqlx::query_scalar("SELECT left FROM stock").fetch_one(&db).await?;
/// assert_eq!(left, 1);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
pub trait Reply {
    /// Returns whether the transaction is rolled back.
    fn is_error(&self) -> bool;
}

/// The options of a transactional function.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// How its transaction begins.
    pub options: TransactionOptions,
    /// Whether it takes part in an outer transaction without a savepoint.
    pub join: bool,
}

/// Clones the handle, so that the body may move the argument. Smart pointers deref to it.
pub fn handle<DB: Dialect>(db: &Db<DB>) -> Db<DB> {
    db.clone()
}

/// Clones the handle in an argument that the attribute chose by its name or as the only one.
pub fn guess<H: Handle>(argument: &H) -> Db<H::Database> {
    argument.handle()
}

/// A `Db`, a reference to one, or an `Arc` of one: so that a type alias of `Db` is found, and any
/// other type is an error that tells the fix.
#[diagnostic::on_unimplemented(
    message = "`#[transactional]` finds no database: `{Self}` is not a `Db`",
    label = "not a `Db`",
    note = "say where the database is, as in `#[transactional(app.db)]`"
)]
pub trait Handle {
    /// The database of the handle.
    type Database: Dialect;

    /// Clones the handle.
    fn handle(&self) -> Db<Self::Database>;
}

impl<DB: Dialect> Handle for Db<DB> {
    type Database = DB;

    fn handle(&self) -> Self {
        self.clone()
    }
}

impl<H: Handle> Handle for &H {
    type Database = H::Database;

    fn handle(&self) -> Db<H::Database> {
        (**self).handle()
    }
}

impl<H: Handle> Handle for Arc<H> {
    type Database = H::Database;

    fn handle(&self) -> Db<H::Database> {
        (**self).handle()
    }
}

/// Runs `work` in a transaction of `db`. `refuses` returns whether a success rolls back.
#[track_caller]
pub fn run<DB, Fut, R>(
    db: &Db<DB>,
    how: How,
    work: Fut,
    refuses: fn(&R) -> bool,
) -> impl Future<Output = R>
where
    DB: Dialect,
    Fut: Future<Output = R>,
    R: Outcome,
{
    let way = if how.join && db.in_transaction() {
        Way::Joined(work)
    } else {
        let work = move || async move {
            let end = work.await;
            if end.commits() && !refuses(&end) {
                Ok(end)
            } else {
                Err(Undo::Refused(end))
            }
        };
        Way::Own(db.transaction_with(how.options, work))
    };
    async move {
        match way {
            Way::Joined(work) => work.await,
            Way::Own(transaction) => match transaction.await {
                Ok(end) | Err(Undo::Refused(end)) => end,
                Err(Undo::Failed(error)) => R::failed(error),
            },
        }
    }
}

enum Way<W, T> {
    Joined(W),
    Own(T),
}

/// Why the transaction is not committed.
enum Undo<R> {
    /// The function returned this value, which rolls back.
    Refused(R),
    /// The transaction could not begin or be committed.
    Failed(Error),
}

impl<R> From<Error> for Undo<R> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The value of a function, to be asked by `refuses()` whether it rolls back. For a [`Reply`]
/// method resolution finds the inherent method, for any other value the method of [`AnyEnd`].
#[derive(Debug)]
pub struct End<'a, R>(pub &'a R);

impl<T: Reply, E> End<'_, Result<T, E>> {
    /// Returns whether its success rolls back.
    pub fn refuses(&self) -> bool {
        self.0.as_ref().is_ok_and(Reply::is_error)
    }
}

/// The fallback for values that are no [`Reply`].
pub trait AnyEnd {
    /// Returns false: the [`Outcome`] alone decides.
    fn refuses(&self) -> bool {
        false
    }
}

impl<R> AnyEnd for End<'_, R> {}
