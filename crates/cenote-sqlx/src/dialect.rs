//! The differences between the databases. Each has an implementation, in the file of its name.

use std::future::Future;

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use sqlx::database::HasStatementCache;
use sqlx::{Connection, Database, Either, Error};

use crate::build_error::BuildError;
use crate::builder::Draft;
use crate::command::Command;
use crate::context::Contextual;
use crate::credentials::Credentials;
use crate::dirt::Dirt;
use crate::error::Class;
use crate::known;
use crate::lexer::Language;
use crate::sandbox::dialects::Sandboxed;
use crate::session::Progress;
use crate::template::Template;
use crate::transaction::TransactionOptions;
use crate::watchdog::Watched;

/// sqlx's options for a connection of this database.
///
/// ```
/// # #[cfg(feature = "sqlite")] fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::{Db, Options};
///
/// let options: Options<sqlx::Sqlite> = "sqlite::memory:".parse()?;
/// let db = Db::<sqlx::Sqlite>::with_options(options).max_size(1).build()?;
/// assert_eq!(db.pool().status().max_size, 1);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
pub type Options<DB> = <<DB as Database>::Connection as Connection>::Options;

/// An item of a row stream of this database: a row, or the result of a statement.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
/// use cenote_sqlx::Step;
/// use futures_util::TryStreamExt;
///
/// let steps = sqlx::raw_sql("SELECT 1; SELECT 2").fetch_many(&db);
/// let steps: Vec<Step<sqlx::Sqlite>> = steps.try_collect().await?;
/// assert_eq!(steps.iter().filter(|step| step.is_right()).count(), 2);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
pub type Step<DB> = Either<<DB as Database>::QueryResult, <DB as Database>::Row>;

/// A database that a [`Db`](crate::Db) can be of: `sqlx::Postgres`, `sqlx::MySql` or
/// `sqlx::Sqlite`. Other crates cannot implement it.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
/// use cenote_sqlx::{Class, Db, Dialect, Dirt};
///
/// /// Generic over the database.
/// fn is_idle<DB: Dialect>(db: &Db<DB>) -> bool {
///     db.pool().status().in_use == 0
/// }
///
/// assert!(is_idle(&db));
/// assert_eq!(sqlx::Sqlite::scan("SELECT 1"), Dirt::NONE);
/// assert_eq!(sqlx::Sqlite::classify(&sqlx::Error::RowNotFound), Class::Statement);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
pub trait Dialect:
    Database<Connection: Sync, Arguments: Clone>
    + HasStatementCache
    + Sync
    + Statements
    + Sandboxed
    + Contextual
    + Watched
{
    /// A statement without effect. It fails in a transaction that has failed.
    #[doc(hidden)]
    const PROBE: &'static str;

    /// Returns what an error means for its connection and for the caller.
    fn classify(error: &Error) -> Class;

    /// Returns whether the server has rolled the whole transaction back after this error, and would
    /// run the next statement outside it.
    #[doc(hidden)]
    fn gives_up(error: &Error) -> bool {
        let _ = error;
        false
    }

    /// The language of the database.
    #[doc(hidden)]
    const LANGUAGE: Language;

    /// Whether the server refuses prepared statements whose tables have changed.
    #[doc(hidden)]
    const HEALS: bool = false;

    /// Returns whether the server refused a prepared statement because its tables have changed
    /// since. Nothing was executed.
    #[doc(hidden)]
    fn is_stale(error: &Error) -> bool {
        let _ = error;
        false
    }

    /// Returns what `sql` may leave behind in its session, as far as its text shows.
    fn scan(sql: &str) -> Dirt {
        known::reading(Self::LANGUAGE, sql).dirt
    }

    /// Returns whether the server has a transaction open on this connection that the driver does
    /// not count.
    #[doc(hidden)]
    fn is_open(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Whether the database has one writer at a time, so that writers should queue on our side.
    #[doc(hidden)]
    const ONE_WRITER: bool = false;

    /// Whether a `COMMIT` that fails has ended the transaction on the server.
    #[doc(hidden)]
    const FAILED_COMMIT_ENDS: bool = false;

    /// The parameters of a URL that the driver knows. Empty if the driver refuses others itself.
    #[doc(hidden)]
    const PARAMETERS: &'static [&'static str] = &[];

    /// Adds to the error of an open what the caller can do about it.
    #[doc(hidden)]
    fn explain(error: Error) -> Error {
        error
    }

    /// Completes the options, and refuses settings that the database cannot have.
    #[doc(hidden)]
    fn template(options: Options<Self>, draft: &mut Draft) -> Result<Options<Self>, BuildError>;

    /// Returns the options with other credentials, or `None` if the database has no users.
    #[doc(hidden)]
    fn with_credentials(options: Options<Self>, credentials: &Credentials)
    -> Option<Options<Self>>;

    /// The means to stop an operation on a connection.
    #[doc(hidden)]
    type Brake: Send + Sync;

    /// Prepares a new connection so that its operations can be stopped.
    #[doc(hidden)]
    fn brake(
        connection: &mut Self::Connection,
        template: &Template<Self>,
    ) -> impl Future<Output = Result<Self::Brake, Error>> + Send;

    /// Returns whether a connection that works no longer belongs to the database that was asked
    /// for.
    #[doc(hidden)]
    fn is_astray(brake: &Self::Brake, template: &Template<Self>) -> bool {
        let _ = (brake, template);
        false
    }

    /// Brings a connection back to a known state after a dropped operation. With `care` an
    /// operation in a transaction is not stopped, because that would end the transaction. After an
    /// error the connection must be closed.
    #[doc(hidden)]
    fn settle(
        connection: &mut Self::Connection,
        progress: Progress,
        brake: &Self::Brake,
        template: &Template<Self>,
        care: bool,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Resets the session, but not its transaction. After an error the connection must be closed.
    #[doc(hidden)]
    fn reset(
        connection: &mut Self::Connection,
        dirt: Dirt,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Returns the statement that begins a transaction with these options, if it is not the default
    /// of the driver.
    #[doc(hidden)]
    fn begin(options: &TransactionOptions) -> Option<String>;

    /// Returns the statement that must run after a transaction with these options.
    #[doc(hidden)]
    fn after(options: &TransactionOptions) -> Option<&'static str> {
        let _ = options;
        None
    }
}

type Answer<'e, T> = BoxFuture<'e, Result<T, Error>>;

/// sqlx's `Executor` of a driver without its lifetimes, which generic code cannot name.
#[doc(hidden)]
pub trait Statements: Database {
    fn execute(
        connection: &mut Self::Connection,
        command: Command<Self>,
    ) -> Answer<'_, Self::QueryResult>;
    fn fetch_all(
        connection: &mut Self::Connection,
        command: Command<Self>,
    ) -> Answer<'_, Vec<Self::Row>>;
    fn fetch_optional(
        connection: &mut Self::Connection,
        command: Command<Self>,
    ) -> Answer<'_, Option<Self::Row>>;
    fn fetch_many(
        connection: &mut Self::Connection,
        command: Command<Self>,
    ) -> BoxStream<'_, Result<Step<Self>, Error>>;
    fn run<'e>(connection: &'e mut Self::Connection, sql: &str) -> Answer<'e, ()>;
    fn prepare<'e>(
        connection: &'e mut Self::Connection,
        sql: sqlx::SqlStr,
        parameters: &'e [Self::TypeInfo],
    ) -> Answer<'e, Self::Statement>;
    fn describe(
        connection: &mut Self::Connection,
        sql: sqlx::SqlStr,
    ) -> Answer<'_, sqlx::Describe<Self>>;
}

macro_rules! statements {
    ($database:ty) => {
        impl $crate::dialect::Statements for $database {
            fn execute(
                connection: &mut Self::Connection,
                command: $crate::command::Command<Self>,
            ) -> BoxFuture<'_, Result<Self::QueryResult, Error>> {
                connection.execute(command)
            }

            fn fetch_all(
                connection: &mut Self::Connection,
                command: $crate::command::Command<Self>,
            ) -> BoxFuture<'_, Result<Vec<Self::Row>, Error>> {
                connection.fetch_all(command)
            }

            fn fetch_optional(
                connection: &mut Self::Connection,
                command: $crate::command::Command<Self>,
            ) -> BoxFuture<'_, Result<Option<Self::Row>, Error>> {
                connection.fetch_optional(command)
            }

            fn fetch_many(
                connection: &mut Self::Connection,
                command: $crate::command::Command<Self>,
            ) -> BoxStream<'_, Result<$crate::dialect::Step<Self>, Error>> {
                connection.fetch_many(command)
            }

            fn run<'e>(
                connection: &'e mut Self::Connection,
                sql: &str,
            ) -> BoxFuture<'e, Result<(), Error>> {
                let sql = sqlx::AssertSqlSafe(sql.to_owned());
                Box::pin(async move { connection.execute(sql).await.map(drop) })
            }

            fn prepare<'e>(
                connection: &'e mut Self::Connection,
                sql: sqlx::SqlStr,
                parameters: &'e [Self::TypeInfo],
            ) -> BoxFuture<'e, Result<Self::Statement, Error>> {
                connection.prepare_with(sql, parameters)
            }

            fn describe(
                connection: &mut Self::Connection,
                sql: sqlx::SqlStr,
            ) -> BoxFuture<'_, Result<sqlx::Describe<Self>, Error>> {
                Executor::describe(connection, sql)
            }
        }
    };
}
pub(crate) use statements;
