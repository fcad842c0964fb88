//! What an error of SQLite means for the connection and for the caller.

use rusqlite::ErrorCode;

/// What an error means for its connection and for the caller. See [`classify`] and
/// [`Error::class`](crate::Error::class).
///
/// ```
/// use cenote_rusqlite::Class;
///
/// assert!(Class::Conflict.is_retryable() && !Class::Conflict.poisons());
/// assert!(!Class::Denied.is_retryable());
/// assert!(Class::Broken.poisons());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The statement or its data is wrong (syntax, constraint, conversion). The connection is good,
    /// and a retry would fail again.
    Statement,
    /// Another connection is in the way (busy, locked). The connection is good, and the whole
    /// transaction is worth another try.
    Conflict,
    /// The pool has no connection to lend. Worth another try later.
    Refused,
    /// The file cannot be opened, or is not a database. A retry would fail again.
    Denied,
    /// The connection cannot be trusted (I/O, corrupt, lost, a panic). It is closed. After a failed
    /// commit, the transaction may or may not have taken effect.
    Broken,
}

impl Class {
    /// Returns whether the connection must be closed.
    pub fn poisons(self) -> bool {
        matches!(self, Self::Denied | Self::Broken)
    }

    /// Returns whether the same call is worth another try.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Conflict | Self::Refused)
    }
}

/// Returns what an error of SQLite means.
///
/// ```
/// use cenote_rusqlite::rusqlite::{Connection, Error};
/// use cenote_rusqlite::{Class, classify};
///
/// let error = Connection::open("/no/such/folder/shop.db").unwrap_err();
/// assert_eq!(classify(&error), Class::Denied);
/// assert_eq!(classify(&Error::QueryReturnedNoRows), Class::Statement);
/// ```
pub fn classify(error: &rusqlite::Error) -> Class {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Class::Conflict,
        Some(ErrorCode::CannotOpen | ErrorCode::NotADatabase | ErrorCode::PermissionDenied) => {
            Class::Denied
        }
        Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::ApiMisuse) => {
            Class::Broken
        }
        _ => Class::Statement,
    }
}
