//! How SeaORM asks for a transaction, in the terms of this crate.

use std::fmt::{Debug, Display};
use std::pin::Pin;

use sea_orm::{AccessMode, DbBackend, IsolationLevel, SqliteTransactionMode, TransactionError};

use super::{Answer, OrmTransaction};
use crate::transaction::{Isolation, TransactionOptions};

/// Returns the options of a transaction. A read-only one takes no lock, so the mode of SQLite does
/// not matter there.
pub(super) fn options(
    backend: DbBackend,
    asked: sea_orm::TransactionOptions,
) -> TransactionOptions {
    let read_only = asked.access_mode == Some(AccessMode::ReadOnly);
    let mode = asked.sqlite_transaction_mode;
    TransactionOptions {
        isolation: asked.isolation_level.map(isolation),
        read_only,
        read_write: asked.access_mode == Some(AccessMode::ReadWrite),
        text: mode
            .filter(|_| backend == DbBackend::Sqlite && !read_only)
            .map(text),
        ..TransactionOptions::new()
    }
}

/// Returns what SeaORM's older method asks for.
pub(super) fn config(
    isolation_level: Option<IsolationLevel>,
    access_mode: Option<AccessMode>,
) -> sea_orm::TransactionOptions {
    sea_orm::TransactionOptions {
        isolation_level,
        access_mode,
        sqlite_transaction_mode: None,
    }
}

fn isolation(level: IsolationLevel) -> Isolation {
    match level {
        IsolationLevel::ReadUncommitted => Isolation::ReadUncommitted,
        IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
        IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
        IsolationLevel::Serializable => Isolation::Serializable,
    }
}

fn text(mode: SqliteTransactionMode) -> &'static str {
    match mode {
        SqliteTransactionMode::Deferred => "BEGIN DEFERRED",
        SqliteTransactionMode::Immediate => "BEGIN IMMEDIATE",
        SqliteTransactionMode::Exclusive => "BEGIN EXCLUSIVE",
    }
}

/// Runs `callback` in a transaction. A rollback that fails does not hide the error that led to it:
/// the connection is closed, and the server rolls back.
pub(super) async fn run<F, T, E>(
    begun: Answer<'_, OrmTransaction>,
    callback: F,
) -> Result<T, TransactionError<E>>
where
    F: for<'c> FnOnce(
        &'c OrmTransaction,
    ) -> Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'c>>,
    E: Display + Debug,
{
    let transaction = begun.await?;
    match callback(&transaction).await {
        Ok(value) => {
            transaction.commit().await?;
            Ok(value)
        }
        Err(error) => {
            let _ = transaction.rollback().await;
            Err(TransactionError::Transaction(error))
        }
    }
}
