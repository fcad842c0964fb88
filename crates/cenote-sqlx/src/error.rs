//! Errors: what they mean for the connection, and how those of the pool travel through sqlx's type.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use cenote::{AcquireError, BindError};
use sqlx::Error;

/// What an error means for the connection that it came from, and for the caller. [`Db::classify`](crate::Db::classify) says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The statement or its data is at fault (syntax, constraint, decoding). The connection is good, and a retry would fail again.
    Statement,
    /// Others were in the way (serialization failure, deadlock, lock timeout, busy). The connection is good, and the whole
    /// transaction is worth another try.
    Conflict,
    /// The server takes nobody now (too many connections, starting up), or the pool has none to lend. Worth another try later.
    Refused,
    /// The connection is lost or cannot be trusted (I/O, protocol, shut down). It is closed. What ran may or may not have happened.
    Broken,
}

impl Class {
    /// Must the connection be closed?
    pub fn poisons(self) -> bool {
        self == Self::Broken
    }

    /// Is the same transaction worth another try? A broken connection is not: nobody knows whether it was committed.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Conflict | Self::Refused)
    }
}

/// What every driver agrees on. `judge` sees the database's own errors.
pub(crate) fn classify(
    error: &Error,
    judge: impl Fn(&(dyn sqlx::error::DatabaseError + 'static)) -> Class,
) -> Class {
    match error {
        Error::Database(error) => judge(&**error),
        _ if pool_error(error).is_some() => Class::Refused,
        Error::Io(_)
        | Error::Tls(_)
        | Error::Protocol(_)
        | Error::WorkerCrashed
        | Error::BeginFailed => Class::Broken,
        Error::PoolTimedOut => Class::Refused,
        // The rest is about the query, its values or its rows, and never reached the wire or has left it.
        _ => Class::Statement,
    }
}

/// The error of the pool that travels in `error`, if one does: with who holds what, since when, and where.
///
/// sqlx's own type has no room for it, so it goes as the inner error of an [`Error::Io`] of the fitting kind. A closed pool is
/// [`Error::PoolClosed`].
pub fn pool_error(error: &Error) -> Option<&BindError<Error>> {
    let Error::Io(error) = error else { return None };
    let error: &PoolError = error.get_ref()?.downcast_ref()?;
    Some(&error.0)
}

pub(crate) fn from_bind(error: BindError<Error>) -> Error {
    let kind = match &error {
        BindError::Acquire(AcquireError::Closed { .. }) => return Error::PoolClosed,
        BindError::Acquire(AcquireError::TimedOut(_)) | BindError::InUse { .. } => {
            io::ErrorKind::TimedOut
        }
        BindError::Acquire(AcquireError::Open { .. }) => io::ErrorKind::ConnectionRefused,
        _ => io::ErrorKind::WouldBlock,
    };
    Error::Io(io::Error::new(kind, PoolError(error)))
}

/// As it travels. Its text tells all its causes, for sqlx's type shows nothing else.
#[derive(Debug)]
struct PoolError(BindError<Error>);

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for PoolError {
    /// The cause below sqlx's error, for a look at its type. The text names it already.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let mut cause = self.0.source()?;
        while !cause.is::<Error>() {
            cause = cause.source()?;
        }
        cause.source()
    }
}

/// The end of a session that its user must hear about.
pub(crate) fn lost(why: &str) -> Error {
    Error::Io(io::Error::new(io::ErrorKind::NotConnected, why.to_owned()))
}
