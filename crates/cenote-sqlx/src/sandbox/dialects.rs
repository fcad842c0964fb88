//! The differences between the databases in a sandbox.

use sqlx::Database;

use crate::dialect::Options;

/// What a sandbox must know of a database.
#[doc(hidden)]
pub trait Sandboxed: Database {
    /// Whether a failed statement fails the whole transaction, so that it needs a savepoint.
    const FAILS_AS_A_WHOLE: bool = false;

    /// How many connections all sandboxes of one place have.
    const BUDGET: usize = 8;

    /// Makes a transaction inside the sandbox read only, if the database can.
    const READ_ONLY: Option<&'static str> = None;

    /// Whether statements like `CREATE TABLE` commit by themselves.
    const COMMITS_DDL: bool = false;

    /// Returns whether this error says that the statement cannot run in a transaction.
    fn needs_own_database(error: &sqlx::Error) -> bool {
        let _ = error;
        false
    }

    /// Returns the server or file that the options name. `None`: a database in memory.
    fn place(options: &Options<Self>) -> Option<String>;
}

#[cfg(feature = "postgres")]
impl Sandboxed for sqlx::Postgres {
    const FAILS_AS_A_WHOLE: bool = true;
    const READ_ONLY: Option<&'static str> = Some("SET TRANSACTION READ ONLY");

    fn needs_own_database(error: &sqlx::Error) -> bool {
        let code = error.as_database_error().and_then(|error| error.code());
        // `active_sql_transaction`, as for `VACUUM` and `CREATE DATABASE`.
        code.as_deref() == Some("25001")
    }

    fn place(options: &Options<Self>) -> Option<String> {
        Some(format!("{}:{}", options.get_host(), options.get_port()))
    }
}

#[cfg(feature = "mysql")]
impl Sandboxed for sqlx::MySql {
    const COMMITS_DDL: bool = true;

    fn place(options: &Options<Self>) -> Option<String> {
        Some(format!("{}:{}", options.get_host(), options.get_port()))
    }
}

#[cfg(feature = "sqlite")]
impl Sandboxed for sqlx::Sqlite {
    /// A database has one writer at a time.
    const BUDGET: usize = 1;
    const READ_ONLY: Option<&'static str> = Some("PRAGMA query_only = 1");

    fn place(options: &Options<Self>) -> Option<String> {
        if crate::sqlite::is_in_memory(options) {
            return None;
        }
        let file = options.get_filename();
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        Some(file.to_string_lossy().into_owned())
    }
}
