//! What differs between the databases: one implementation each, in the file of its name.

use std::future::Future;

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use sqlx::{Connection, Database, Either, Error};

use crate::builder::{BuildError, Credentials};
use crate::command::Command;
use crate::error::Class;
use crate::scan::Dirt;
use crate::session::Flight;
use crate::template::Template;
use crate::transaction::TransactionOptions;

/// sqlx's options for a connection of this database.
pub type Options<DB> = <<DB as Database>::Connection as Connection>::Options;

/// What a row stream of this database is made of.
pub type Step<DB> = Either<<DB as Database>::QueryResult, <DB as Database>::Row>;

/// A database that [`Db`](crate::Db) can speak to. Implemented here for `sqlx::Postgres`, `sqlx::MySql` and `sqlx::Sqlite`, and by nobody else.
pub trait Dialect: Database<Connection: Sync> + Sync + Statements {
    /// A statement that does nothing, and fails in a transaction that has failed.
    #[doc(hidden)]
    const PROBE: &'static str;

    /// What an error means for the connection that it came from, and for the caller.
    fn classify(error: &Error) -> Class;

    /// Does this error mean that the server has rolled the whole transaction back, and would run the next statement outside it?
    #[doc(hidden)]
    fn gives_up(error: &Error) -> bool {
        let _ = error;
        false
    }

    /// What `sql` may leave behind in its session.
    fn scan(sql: &str) -> Dirt;

    /// Can `sql` run without the right to write? Only databases with one writer ask.
    #[doc(hidden)]
    fn is_read(sql: &str) -> bool {
        let _ = sql;
        true
    }

    /// Has the database room for one writer only, so that they should stand in line here?
    #[doc(hidden)]
    const ONE_WRITER: bool = false;

    /// The last word on the options before the first connection is opened.
    #[doc(hidden)]
    fn template(
        options: Options<Self>,
        draft: &mut crate::builder::Draft,
    ) -> Result<Options<Self>, BuildError>;

    /// The options with other credentials. `None` if the database knows none.
    #[doc(hidden)]
    fn with_credentials(options: Options<Self>, credentials: &Credentials)
    -> Option<Options<Self>>;

    /// By what an operation on one connection can be stopped.
    #[doc(hidden)]
    type Brake: Send + Sync;

    /// Finds out, or puts in, the brake of a new connection.
    #[doc(hidden)]
    fn brake(
        connection: &mut Self::Connection,
        template: &Template<Self>,
    ) -> impl Future<Output = Result<Self::Brake, Error>> + Send;

    /// Does a connection that answers no longer speak to the database that was asked for?
    #[doc(hidden)]
    fn is_astray(brake: &Self::Brake, template: &Template<Self>) -> bool {
        let _ = (brake, template);
        false
    }

    /// After a dropped operation: brings the connection back to a known place. With `care` what runs in a transaction is not stopped,
    /// for that would end the transaction. An error: nobody can tell, close it.
    #[doc(hidden)]
    fn settle(
        connection: &mut Self::Connection,
        flight: Flight,
        brake: &Self::Brake,
        template: &Template<Self>,
        care: bool,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Makes the session as good as new, but for the transaction. An error closes it.
    #[doc(hidden)]
    fn reset(
        connection: &mut Self::Connection,
        dirt: Dirt,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// The statement that begins a transaction with these options, if it is not the usual one.
    #[doc(hidden)]
    fn begin(options: &TransactionOptions) -> Option<String>;

    /// What must be run after a transaction with these options.
    #[doc(hidden)]
    fn after(options: &TransactionOptions) -> Option<&'static str> {
        let _ = options;
        None
    }
}

type Answer<'e, T> = BoxFuture<'e, Result<T, Error>>;

/// sqlx's `Executor` of a driver, without its lifetimes: what makes generic code possible.
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
