//! What `#[transactional]` runs on: what a function's end means for its transaction, and the transaction around it.

#[cfg(feature = "http")]
mod http;
#[cfg(all(doctest, feature = "sqlite"))]
mod misuse;

use std::error::Error as StdError;
use std::future::Future;
use std::time::Duration;

use sqlx::Error;

use crate::db::Db;
use crate::dialect::Dialect;
use crate::retry::{Retry, is_conflict};
use crate::transaction::TransactionOptions;

/// Runs an `async fn` in a transaction: committed if it ends well; rolled back if it ends with an error or an error status, panics, or is dropped.
///
/// As in [`Db::transaction`], every `&db` of this database in the body is part of it, however deep in the calls, and without being passed along.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::{Db, transactional};
///
/// #[transactional]
/// async fn transfer(db: &Db<sqlx::Sqlite>, from: i64, to: i64, amount: i64) -> Result<(), sqlx::Error> {
///     add(db, to, amount).await?;
///     add(db, from, -amount).await // an error here undoes both
/// }
///
/// /// Knows nothing of the transaction, and is part of it.
/// async fn add(db: &Db<sqlx::Sqlite>, account: i64, amount: i64) -> Result<(), sqlx::Error> {
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
/// is an expression of the function's arguments: `#[transactional(db)]`, `#[transactional(self.db)]`, `#[transactional(app.db)]`. It may be left out if
/// one argument is a `Db<..>` or a `&Db<..>`.
///
/// # Options
///
/// | option | |
/// |---|---|
/// | `read_only` | whatever tries to write is refused |
/// | `isolation = Serializable` | or another variant of [`Isolation`](crate::Isolation) |
/// | `retry` | again, all of it, when others were in the way (serialization failure, deadlock): as [`Retry::default`] says |
/// | `retry = ..` | as this [`Retry`] says |
/// | `nested = savepoint` | in a transaction of this database: undoes its own part if it fails (the default) |
/// | `nested = join` | in a transaction of this database: takes part in it, as if the attribute were not there. If it fails, nothing is undone until the outer fails: hand the error on |
///
/// Nested, the first two say nothing, and there is one try: they are up to the outermost.
///
/// # What it returns
/// is a `Result<T, E>` with `E: From<sqlx::Error>`, for a begin or a commit can fail. Then that is the function's error, and its success is
/// dropped. A rollback that fails hides no error. An `Ok` rolls back, too, if it says so: see [`Reply`].
///
/// With the feature `http` of cenote-sqlx, these are rolled back by an error status, 4xx or 5xx: an `http::Response`, an `http::StatusCode` and
/// `impl IntoResponse`, alone or in an `Ok`, and a tuple in an `Ok` that begins with a status. A failed transaction is a 500, or a 503 with `Retry-After`
/// if the pool had no connection to lend. So a handler of axum is transactional as it is.
///
/// ```
/// # #[cfg(all(feature = "http", feature = "sqlite"))]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use cenote_sqlx::{Db, transactional};
/// use http::StatusCode;
///
/// #[transactional]
/// async fn create(db: &Db<sqlx::Sqlite>, name: &str) -> Result<(StatusCode, String), sqlx::Error> {
///     sqlx::query("INSERT INTO people (name) VALUES (?)").bind(name).execute(db).await?;
///     if name.is_empty() {
///         return Ok((StatusCode::UNPROCESSABLE_ENTITY, "a name, please".into())); // nobody is inserted
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
/// With `retry` the body borrows the arguments. What it would use up, it clones; an argument that is `mut` must be `Clone`, and is fresh at each try;
/// what it changes behind a `&mut`, or outside the database, stays changed. `E` is a `std::error::Error`, a box with one, or like `anyhow::Error`: the
/// error that was in the way is looked for in it and among its sources.
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
/// Dropping the future drops the body, and rolls back; in the middle of the commit nobody can tell.
#[doc(inline)]
pub use cenote_macros::transactional;

/// What a [`transactional`](crate::transactional) function returns: it says whether to commit, and can be made of a transaction that failed.
///
/// A `Result` is one if its error is made of [`sqlx::Error`]. With the feature `http` a response and a status are, too: see [`Reply`].
#[diagnostic::on_unimplemented(
    message = "a transactional function cannot return `{Self}`: it has no way to say that the transaction failed",
    label = "not an `Outcome`",
    note = "return `Result<T, E>` with `E: From<sqlx::Error>`",
    note = "or an HTTP response: `http::Response<B>`, with the feature `http` of cenote-sqlx"
)]
pub trait Outcome {
    /// Is what was done to last?
    fn commits(&self) -> bool;

    /// The end of a function whose transaction could not be begun or committed.
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

/// A success that may say no all the same: in an `Ok` it rolls back if it [is an error](Reply::is_error).
///
/// With the feature `http` these are a response, a status, and a tuple that begins with a status; 4xx and 5xx are errors.
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
    /// Is what was done to be undone?
    fn is_error(&self) -> bool;
}

/// How a transactional function is run.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// How its transaction is begun.
    pub options: TransactionOptions,
    /// Does it take part in a transaction that is there already, without a savepoint?
    pub join: bool,
}

/// The handle to `db`, apart from what the function does with its arguments.
pub fn handle<DB: Dialect>(db: &Db<DB>) -> Db<DB> {
    db.clone()
}

/// Runs `work` in a transaction of `db`. `refuses` tells a success that is an error all the same.
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

/// Why there was nothing to commit.
enum Undo<R> {
    /// The function ended so.
    Refused(R),
    /// The transaction could not be begun or committed.
    Failed(Error),
}

impl<R> From<Error> for Undo<R> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Asks a function's end whether it is a [`Reply`]: its own method is found if so, and that of [`AnyEnd`] otherwise.
#[derive(Debug)]
pub struct End<'a, R>(pub &'a R);

impl<T: Reply, E> End<'_, Result<T, E>> {
    /// Is its success an error?
    pub fn refuses(&self) -> bool {
        self.0.as_ref().is_ok_and(Reply::is_error)
    }
}

/// For what is no [`Reply`].
pub trait AnyEnd {
    /// It has no more to say than its [`Outcome`].
    fn refuses(&self) -> bool {
        false
    }
}

impl<R> AnyEnd for End<'_, R> {}

/// Counts the tries of a function with `retry`.
#[derive(Debug)]
pub struct Tries {
    retry: Retry,
    left: u32,
    tried: u32,
}

impl Tries {
    /// Inside a transaction there is one: only the outermost can be repeated.
    pub fn new<DB: Dialect>(db: &Db<DB>, retry: Retry) -> Self {
        let attempts = if db.in_transaction() {
            1
        } else {
            retry.attempts
        };
        Self {
            retry,
            left: attempts.saturating_sub(1),
            tried: 0,
        }
    }

    /// After `end`: how long to rest before the next try, if there is to be one.
    pub fn rest<DB: Dialect, R: Again<By>, By>(&mut self, _: &Db<DB>, end: &R) -> Option<Duration> {
        if self.left == 0 || !end.cause().is_some_and(is_conflict::<DB>) {
            return None;
        }
        self.left -= 1;
        self.tried += 1;
        Some(self.retry.rest(self.tried))
    }
}

/// Rests.
pub async fn rest(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// The end of a function that can be tried again: it tells the error behind it. `By` is how.
#[diagnostic::on_unimplemented(
    message = "`retry` cannot tell why a function that returns `{Self}` failed",
    label = "tells no cause",
    note = "return `Result<T, E>` whose `E` implements `std::error::Error`, or is `anyhow::Error` or a boxed error"
)]
pub trait Again<By> {
    /// The error, if it is one.
    fn cause(&self) -> Option<&(dyn StdError + 'static)>;
}

/// By an error of its own type.
#[derive(Debug)]
pub enum ByType {}

/// By an error in a box, or in what holds one.
#[derive(Debug)]
pub enum ByBox {}

/// By an error in a box that stays in its thread.
#[derive(Debug)]
pub enum ByLocalBox {}

impl<T, E: StdError + 'static> Again<ByType> for Result<T, E> {
    fn cause(&self) -> Option<&(dyn StdError + 'static)> {
        self.as_ref().err().map(|error| error as _)
    }
}

impl<T, E: AsRef<dyn StdError + Send + Sync>> Again<ByBox> for Result<T, E> {
    fn cause(&self) -> Option<&(dyn StdError + 'static)> {
        self.as_ref().err().map(|error| error.as_ref() as _)
    }
}

impl<T> Again<ByLocalBox> for Result<T, Box<dyn StdError>> {
    fn cause(&self) -> Option<&(dyn StdError + 'static)> {
        self.as_ref().err().map(|error| &**error)
    }
}
