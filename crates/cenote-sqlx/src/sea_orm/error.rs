//! Errors of sqlx as errors of SeaORM, and the way back.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr};
use sqlx::Error;

use crate::error::pool_error;

/// A [`DbErr`] that can also be made from a [`sqlx::Error`], as [`Db::transaction`] and
/// `#[transactional]` ask for. `?` turns a `DbErr` into it, and it into a `DbErr`.
///
/// ```
/// # #[cfg(all(feature = "sea-orm", feature = "sqlite"))]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::{Db, OrmError};
/// use sea_orm::{ConnectionTrait, DbErr};
///
/// async fn prepare(db: &Db<sqlx::Sqlite>) -> Result<(), DbErr> {
///     db.transaction(async || {
///         db.execute_unprepared("CREATE TABLE cakes (name TEXT)").await?;
///         Err::<(), _>(OrmError(DbErr::Custom("no cake today".into())))
///     })
///     .await?;
///     Ok(())
/// }
///
/// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
/// assert_eq!(prepare(&db).await, Err(DbErr::Custom("no cake today".into())));
/// assert!(db.execute_unprepared("SELECT * FROM cakes").await.is_err(), "rolled back");
/// # Ok(()) }
/// # #[cfg(not(all(feature = "sea-orm", feature = "sqlite")))] fn main() {}
/// ```
///
/// [`Db::transaction`]: crate::Db::transaction
#[derive(Debug)]
pub struct OrmError(pub DbErr);

impl From<DbErr> for OrmError {
    fn from(error: DbErr) -> Self {
        Self(error)
    }
}

impl From<Error> for OrmError {
    fn from(error: Error) -> Self {
        Self(of_query(error))
    }
}

impl From<OrmError> for DbErr {
    fn from(error: OrmError) -> Self {
        error.0
    }
}

impl fmt::Display for OrmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for OrmError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

/// Returns the error of a query, or of a begin, a commit or a rollback, as SeaORM does.
pub(super) fn of_query(error: Error) -> DbErr {
    sort(error, DbErr::Query)
}

pub(super) fn of_write(error: Error) -> DbErr {
    sort(error, DbErr::Exec)
}

/// SeaORM has a variant for a timeout of the pool, which cannot carry the report of this pool. So a
/// timeout is an error of the connection, with the report in its text.
fn sort(error: Error, kind: fn(RuntimeErr) -> DbErr) -> DbErr {
    if matches!(error, Error::PoolClosed) {
        return DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed);
    }
    let kind = match pool_error(&error) {
        Some(_) => DbErr::Conn,
        None => kind,
    };
    kind(RuntimeErr::SqlxError(Arc::new(error)))
}

/// Returns the error of sqlx in an error of SeaORM, which is not among its sources.
pub(crate) fn sqlx_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    let RuntimeErr::SqlxError(error) = error.downcast_ref()? else {
        return None;
    };
    Some(error)
}
