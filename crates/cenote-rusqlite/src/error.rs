//! Errors of calls and of sessions.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::io;

use cenote::error::ErrorClass;
use cenote::{AcquireError, OpenError};

use crate::class::{Class, classify};

/// Why a call failed. `E` is the error of the closure.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_rusqlite::{Class, Db, Error};
///
/// let db = Db::memory().build()?;
/// let sold_out = db.write(|_| Err::<(), _>("sold out")).await;
/// assert!(matches!(sold_out, Err(Error::Closure("sold out"))));
///
/// let wrong = db.read(|conn| conn.execute_batch("selekt 1")).await.unwrap_err();
/// assert_eq!(wrong.class(), Class::Statement);
/// assert!(wrong.sqlite().is_some() && !wrong.is_retryable());
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error<E = rusqlite::Error> {
    /// No connection could be acquired. The closure did not run.
    Acquire(AcquireError<SessionError>),
    /// The closure returned this error. What it wrote in [`Db::write`](crate::Db::write) was rolled
    /// back.
    Closure(E),
    /// The transaction of [`Db::write`](crate::Db::write) could not begin or commit.
    Transaction(rusqlite::Error),
    /// The closure panicked, with this message. Its connection was closed.
    Panicked(String),
    /// The connection was closed before the call was over: an earlier closure of the same lease
    /// panicked, or the pool was [severed](cenote::Pool::sever). Nothing was committed.
    Lost,
}

impl<E: 'static> Error<E> {
    /// Returns what the error means for the connection and for the caller.
    pub fn class(&self) -> Class {
        match self {
            Self::Acquire(error) => match opening(error).map(classify) {
                Some(Class::Denied) => Class::Denied,
                _ => Class::Refused,
            },
            Self::Closure(_) | Self::Transaction(_) => {
                self.sqlite().map_or(Class::Statement, classify)
            }
            Self::Panicked(_) | Self::Lost => Class::Broken,
        }
    }

    /// Returns whether the same call is worth another try: another connection was in the way, or
    /// the pool had none to lend.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Acquire(error) => error.is_retryable() && self.class().is_retryable(),
            _ => self.class().is_retryable(),
        }
    }

    /// Returns the error of SQLite, if it is one.
    pub fn sqlite(&self) -> Option<&rusqlite::Error> {
        match self {
            Self::Acquire(error) => opening(error),
            Self::Closure(error) => of_closure(error),
            Self::Transaction(error) => Some(error),
            Self::Panicked(_) | Self::Lost => None,
        }
    }
}

/// Returns the error of a closure, if it is one of SQLite.
pub(crate) fn of_closure<E: 'static>(error: &E) -> Option<&rusqlite::Error> {
    let error: &dyn Any = error;
    error.downcast_ref()
}

/// Returns why SQLite could not open a connection.
fn opening(error: &AcquireError<SessionError>) -> Option<&rusqlite::Error> {
    let opening = match error {
        AcquireError::Open { error, .. } => error,
        AcquireError::TimedOut(timed_out) => timed_out.last_open_error()?,
        AcquireError::Unavailable(unavailable) => unavailable.cause.as_ref()?,
        _ => return None,
    };
    match opening {
        OpenError::Failed(cause) => match &**cause {
            SessionError::Sqlite(error) => Some(error),
            SessionError::Thread(_) | SessionError::Lost => None,
        },
        _ => None,
    }
}

impl<E> From<AcquireError<SessionError>> for Error<E> {
    fn from(error: AcquireError<SessionError>) -> Self {
        Self::Acquire(error)
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(error) => error.fmt(f),
            Self::Closure(error) => error.fmt(f),
            Self::Transaction(error) => write!(f, "the transaction failed: {error}"),
            Self::Panicked(message) => write!(f, "the closure panicked: {message}"),
            Self::Lost => f.write_str("the connection was closed before the call was over"),
        }
    }
}

impl<E: StdError + 'static> StdError for Error<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The text of these errors is part of ours, so their own causes come next.
        match self {
            Self::Acquire(error) => error.source(),
            Self::Closure(error) => error.source(),
            Self::Transaction(error) => error.source(),
            Self::Panicked(_) | Self::Lost => None,
        }
    }
}

/// Why a session could not be opened, checked or cleaned.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionError {
    /// SQLite refused.
    Sqlite(rusqlite::Error),
    /// The system has no thread for the connection.
    Thread(io::Error),
    /// The thread of the connection has ended.
    Lost,
}

impl SessionError {
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Sqlite(error) => match classify(error) {
                Class::Denied => ErrorClass::Denied,
                Class::Conflict => ErrorClass::Overloaded,
                Class::Statement | Class::Refused | Class::Broken => ErrorClass::Other,
            },
            Self::Thread(_) => ErrorClass::Overloaded,
            Self::Lost => ErrorClass::Other,
        }
    }
}

impl From<rusqlite::Error> for SessionError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "no thread for the connection: {error}"),
            Self::Lost => f.write_str("the thread of the connection has ended"),
        }
    }
}

impl StdError for SessionError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Sqlite(error) => error.source(),
            Self::Thread(error) => error.source(),
            Self::Lost => None,
        }
    }
}
