//! Errors: what they mean for the connection, and how errors of the pool fit into sqlx's type.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use cenote::AcquireError;
use cenote::scope::BindError;
use sqlx::Error;

use crate::sandbox::WAY_OUT;

/// What an error means for its connection and for the caller. See
/// [`Db::classify`](crate::Db::classify).
///
/// ```
/// use cenote_sqlx::Class;
///
/// assert!(Class::Conflict.is_retryable() && !Class::Conflict.poisons());
/// assert!(!Class::Broken.is_retryable() && Class::Broken.poisons());
/// assert!(!Class::Denied.is_retryable());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The statement or its data is wrong (syntax, constraint, decoding). The connection is good,
    /// and a retry would fail again.
    Statement,
    /// A conflict with other transactions (serialization failure, deadlock, lock timeout, busy).
    /// The connection is good, and the whole transaction is worth another try.
    Conflict,
    /// The server accepts no connection now (too many connections, starting up), or the pool has
    /// none to lend. Worth another try later.
    Refused,
    /// The server or the file does not accept this client: a wrong password, an unknown user or
    /// database, a missing file. A retry would fail again, and can lock an account.
    Denied,
    /// The connection is lost or cannot be trusted (I/O, protocol, shutdown). It is closed. The
    /// statement may or may not have taken effect.
    Broken,
}

impl Class {
    /// Returns whether the connection must be closed.
    pub fn poisons(self) -> bool {
        self == Self::Broken
    }

    /// Returns whether the same transaction is worth another try. Not after a broken connection,
    /// because the transaction may have been committed.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Conflict | Self::Refused)
    }
}

/// Returns what [`Db::classify`](crate::Db::classify) returns, for code that does not know which
/// database an error comes from.
///
/// ```
/// use cenote_sqlx::{Class, classify};
///
/// assert_eq!(classify(&sqlx::Error::RowNotFound), Class::Statement);
/// assert_eq!(classify(&sqlx::Error::WorkerCrashed), Class::Broken);
/// ```
pub fn classify(error: &Error) -> Class {
    classify_by(error, |error| {
        #[cfg(feature = "postgres")]
        if error
            .try_downcast_ref::<sqlx::postgres::PgDatabaseError>()
            .is_some()
        {
            return crate::postgres::judge(error);
        }
        #[cfg(feature = "mysql")]
        if error
            .try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>()
            .is_some()
        {
            return crate::mysql::judge(error);
        }
        #[cfg(feature = "sqlite")]
        if error
            .try_downcast_ref::<sqlx::sqlite::SqliteError>()
            .is_some()
        {
            return crate::sqlite::judge(error);
        }
        let _ = error;
        Class::Statement
    })
}

/// Returns whether the server refused to open a connection in a way that a retry cannot change: a
/// wrong password, an unknown user, an unknown database, or options that make no sense.
///
/// ```
/// assert!(!cenote_sqlx::is_denied(&sqlx::Error::PoolTimedOut));
/// assert!(cenote_sqlx::is_denied(&sqlx::Error::Configuration("no such host".into())));
/// ```
pub fn is_denied(error: &Error) -> bool {
    match error {
        Error::Configuration(_) => true,
        Error::Database(database) => {
            // SQLite: the file cannot be opened, or is no database.
            let is_no_database = matches!(database.code().as_deref(), Some("14" | "26"));
            is_no_database || classify(error) == Class::Denied
        }
        _ => false,
    }
}

/// Classifies the errors that all drivers share. `judge` classifies errors of the database.
pub(crate) fn classify_by(
    error: &Error,
    judge: impl Fn(&(dyn sqlx::error::DatabaseError + 'static)) -> Class,
) -> Class {
    match error {
        Error::Database(error) => judge(&**error),
        _ if pool_error(error).is_some() => {
            let cause = pool_error(error).and_then(cause);
            match cause.and_then(Error::as_database_error).map(judge) {
                Some(Class::Denied) => Class::Denied,
                _ => Class::Refused,
            }
        }
        Error::Io(_)
        | Error::Tls(_)
        | Error::Protocol(_)
        | Error::WorkerCrashed
        | Error::BeginFailed => Class::Broken,
        Error::PoolTimedOut => Class::Refused,
        // All others concern the query, its values or its rows, not the connection.
        _ => Class::Statement,
    }
}

/// Returns the error of the pool inside `error`, if there is one. A timeout tells who holds the
/// connections, since when, and at which line.
///
/// sqlx's type has no variant for it, so it is the inner error of an [`Error::Io`]. A closed pool
/// is [`Error::PoolClosed`].
///
/// Do not send the text of such an error to a client: it has file names of the program and the
/// statements of other requests.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use cenote::AcquireError;
/// use cenote::scope::BindError;
/// use cenote_sqlx::{Db, pool_error};
///
/// let limit = Duration::from_millis(100);
/// let db = Db::sqlite("sqlite::memory:").max_size(1).acquire_timeout(limit).build()?;
/// let mut held = db.acquire().await?;
/// sqlx::query("SELECT 42").execute(&mut held).await?;
///
/// let error = db.acquire().await.unwrap_err();
/// match pool_error(&error) {
///     Some(BindError::Acquire(AcquireError::TimedOut(seen))) => {
///         assert_eq!(seen.holders()[0].label.as_deref(), Some("SELECT 42"));
///     }
///     other => panic!("not a timeout: {other:?}"),
/// }
/// assert!(error.to_string().contains("SELECT 42"));
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
pub fn pool_error(error: &Error) -> Option<&BindError<Error>> {
    let Error::Io(error) = error else { return None };
    let error: &PoolError = error.get_ref()?.downcast_ref()?;
    Some(&error.0)
}

/// Returns whether `error` says that no connection came free in time, as
/// [`Error::PoolTimedOut`] does for a pool of sqlx.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use cenote_sqlx::{Db, is_timeout};
///
/// let limit = Duration::from_millis(100);
/// let db = Db::sqlite("sqlite::memory:").max_size(1).acquire_timeout(limit).build()?;
/// db.warm().await?;
/// let _held = db.acquire().await?;
/// assert!(is_timeout(&db.acquire().await.unwrap_err()));
/// assert!(!is_timeout(&sqlx::Error::RowNotFound));
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
pub fn is_timeout(error: &Error) -> bool {
    let timed_out = pool_error(error)
        .is_some_and(|error| matches!(error, BindError::Acquire(AcquireError::TimedOut(_))));
    timed_out || matches!(error, Error::PoolTimedOut)
}

/// Returns the error of the driver that an error of the pool is about.
pub(crate) fn cause(error: &BindError<Error>) -> Option<&Error> {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        next = error.source();
    }
    None
}

/// As [`from_bind`], for a handle with one connection.
pub(crate) fn from_bind_in_sandbox(error: BindError<Error>) -> Error {
    let in_use = matches!(error, BindError::InUse { .. });
    wrap(error, in_use.then_some(WAY_OUT))
}

pub(crate) fn from_bind(error: BindError<Error>) -> Error {
    wrap(error, None)
}

fn wrap(error: BindError<Error>, way_out: Option<&'static str>) -> Error {
    let kind = match &error {
        BindError::Acquire(AcquireError::Closed { .. }) => return Error::PoolClosed,
        BindError::Acquire(AcquireError::TimedOut(_)) | BindError::InUse { .. } => {
            io::ErrorKind::TimedOut
        }
        BindError::Acquire(AcquireError::Open { .. }) => io::ErrorKind::ConnectionRefused,
        _ => io::ErrorKind::WouldBlock,
    };
    Error::Io(io::Error::new(kind, PoolError(error, way_out)))
}

/// An error of the pool inside an `io::Error`. Its text names all causes, because sqlx shows only
/// the text.
#[derive(Debug)]
struct PoolError(BindError<Error>, Option<&'static str>);

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        if matches!(self.0, BindError::InUse { .. }) {
            f.write_str(
                " (a statement or a row stream of this transaction: read the stream to its end, \
                 or drop it)",
            )?;
        }
        match self.1 {
            Some(way_out) => write!(f, "; a sandbox has one connection: {way_out}"),
            None => Ok(()),
        }
    }
}

impl StdError for PoolError {
    /// Returns the cause below sqlx's error, for a caller that looks at its type. The text names
    /// it.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let mut cause = self.0.source()?;
        while !cause.is::<Error>() {
            cause = cause.source()?;
        }
        cause.source()
    }
}

/// Returns the error of a session that cannot go on.
pub(crate) fn lost(why: &str) -> Error {
    Error::Io(io::Error::new(io::ErrorKind::NotConnected, why.to_owned()))
}
