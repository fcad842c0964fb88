//! The handle as a connection of SeaORM. Its traits are implemented once, in `sea_orm/traits.rs`,
//! for every type that has a [`Runner`].

mod begin;
mod error;
mod handle;
mod rows;
mod traits;
mod transaction;

use std::panic::Location;

use futures_core::future::BoxFuture;
use futures_core::stream::BoxStream;
use sea_orm::{DbBackend, DbErr, ExecResult, QueryResult, Statement};
use sea_query_sqlx::SqlxValues;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Executor, IntoArguments};

use crate::dialect::Dialect;
use crate::transaction::TransactionOptions;

pub use self::error::OrmError;
pub use self::transaction::OrmTransaction;

pub(crate) use self::error::sqlx_error;

/// A database that SeaORM can use through a [`Db`](crate::Db): with the feature `sea-orm` every
/// [`Dialect`].
///
/// ```
/// # #[cfg(all(feature = "sea-orm", feature = "sqlite"))]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::{Db, OrmDialect};
/// use sea_orm::{ConnectionTrait, DbErr};
///
/// /// Generic over the database. `impl ConnectionTrait` is the way of SeaORM.
/// async fn prepare<DB: OrmDialect>(db: &Db<DB>) -> Result<(), DbErr> {
///     db.execute_unprepared("CREATE TABLE cakes (name TEXT)").await.map(drop)
/// }
///
/// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
/// prepare(&db).await?;
/// assert!(prepare(&db).await.is_err());
/// # Ok(()) }
/// # #[cfg(not(all(feature = "sea-orm", feature = "sqlite")))] fn main() {}
/// ```
pub trait OrmDialect:
    Dialect<Arguments: IntoArguments<Self>, Row: Into<QueryResult>, QueryResult: Into<ExecResult>>
{
    #[doc(hidden)]
    const BACKEND: DbBackend;

    #[doc(hidden)]
    fn arguments(values: SqlxValues) -> Self::Arguments;
}

/// Writes the implementation for one database.
macro_rules! orm_dialect {
    ($feature:literal, $database:ident) => {
        #[cfg(feature = $feature)]
        impl OrmDialect for sqlx::$database {
            const BACKEND: DbBackend = DbBackend::$database;

            fn arguments(values: SqlxValues) -> Self::Arguments {
                IntoArguments::<Self>::into_arguments(values)
            }
        }
    };
}

orm_dialect!("postgres", Postgres);
orm_dialect!("mysql", MySql);
orm_dialect!("sqlite", Sqlite);

type Answer<'a, T> = BoxFuture<'a, Result<T, DbErr>>;
type Rows<'a> = BoxStream<'a, Result<QueryResult, DbErr>>;

/// The methods of SeaORM's traits, without those that follow from others.
trait Runner: Send + Sync {
    fn backend(&self) -> DbBackend;
    fn execute(&self, statement: Statement) -> Answer<'_, ExecResult>;
    fn execute_text<'a>(&'a self, sql: &str) -> Answer<'a, ExecResult>;
    fn query_one(&self, statement: Statement) -> Answer<'_, Option<QueryResult>>;
    fn query_all(&self, statement: Statement) -> Answer<'_, Vec<QueryResult>>;
    fn stream(&self, statement: Statement) -> Answer<'_, Rows<'_>>;

    /// Begins a transaction for a caller at `site`, or a savepoint in one.
    fn begin(
        &self,
        site: &'static Location<'static>,
        options: TransactionOptions,
    ) -> Answer<'_, OrmTransaction>;
}

/// Returns the query of a statement, with its values.
fn query<DB: OrmDialect>(statement: Statement) -> Query<'static, DB, DB::Arguments> {
    let values = statement.values.unwrap_or(sea_orm::Values(Vec::new()));
    sqlx::query_with(
        AssertSqlSafe(statement.sql),
        DB::arguments(SqlxValues(values)),
    )
}

async fn execute<'e, DB: OrmDialect>(
    executor: impl Executor<'e, Database = DB>,
    statement: Statement,
) -> Result<ExecResult, DbErr> {
    let done = query::<DB>(statement).execute(executor).await;
    done.map(Into::into).map_err(error::of_write)
}

async fn execute_text<'e, DB: OrmDialect>(
    executor: impl Executor<'e, Database = DB>,
    sql: String,
) -> Result<ExecResult, DbErr> {
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(executor).await;
    done.map(Into::into).map_err(error::of_write)
}

async fn query_one<'e, DB: OrmDialect>(
    executor: impl Executor<'e, Database = DB>,
    statement: Statement,
) -> Result<Option<QueryResult>, DbErr> {
    let found = query::<DB>(statement).fetch_optional(executor).await;
    found
        .map(|row| row.map(Into::into))
        .map_err(error::of_query)
}

async fn query_all<'e, DB: OrmDialect>(
    executor: impl Executor<'e, Database = DB>,
    statement: Statement,
) -> Result<Vec<QueryResult>, DbErr> {
    let found = query::<DB>(statement).fetch_all(executor).await;
    found
        .map(|rows| rows.into_iter().map(Into::into).collect())
        .map_err(error::of_query)
}
