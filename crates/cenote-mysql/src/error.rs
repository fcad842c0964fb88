//! Errors: what they mean for the connection and for the caller.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use cenote::AcquireError;
use cenote::scope::BindError;
use mysql_async::{DriverError, IoError};

/// Why a call of the [`Pool`](crate::Pool) failed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_mysql::{Class, Error, Pool};
///
/// let pool = Pool::from_url("mysql://app@127.0.0.1:1/shop").build()?;
/// let error = pool.query_drop("SELECT 1").await.unwrap_err();
/// assert!(matches!(error, Error::Pool(_)));
/// assert_eq!(error.class(), Class::Refused);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server or the driver has failed.
    Mysql(mysql_async::Error),
    /// The pool lent no connection. A timeout tells who holds the connections.
    Pool(Box<BindError<Error>>),
    /// The provider of credentials has failed.
    Credentials(Box<dyn StdError + Send + Sync>),
    /// The connection was lost or cannot be trusted, and is closed. The text says why.
    Lost(String),
}

impl Error {
    /// Returns what this means for the connection and for the caller.
    pub fn class(&self) -> Class {
        match self {
            Self::Mysql(error) => classify(error),
            Self::Pool(error) => match cause(&**error).map(Self::class) {
                Some(Class::Denied) => Class::Denied,
                _ => Class::Refused,
            },
            Self::Credentials(_) => Class::Refused,
            Self::Lost(_) => Class::Broken,
        }
    }

    /// Returns whether the same transaction is worth another try.
    pub fn is_retryable(&self) -> bool {
        self.class().is_retryable()
    }

    /// Returns whether no connection came free in time.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Pool(error) => matches!(
                **error,
                BindError::Acquire(AcquireError::TimedOut(_)) | BindError::InUse { .. }
            ),
            _ => false,
        }
    }

    /// Returns the error of the driver: of the statement, or of the open that failed.
    pub fn as_mysql(&self) -> Option<&mysql_async::Error> {
        match self {
            Self::Mysql(error) => Some(error),
            Self::Pool(error) => cause(&**error)?.as_mysql(),
            Self::Credentials(_) | Self::Lost(_) => None,
        }
    }

    pub(crate) fn lost(why: &str) -> Self {
        Self::Lost(why.to_owned())
    }
}

/// Returns the error of an open below an error of the pool.
fn cause<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        next = error.source();
    }
    None
}

/// Returns the error of the operating system that an error of the driver is about.
pub(crate) fn io_cause(error: &mysql_async::Error) -> Option<&io::Error> {
    match error {
        mysql_async::Error::Io(IoError::Io(error)) => Some(error),
        _ => None,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mysql(error) => error.fmt(f),
            Self::Pool(error) => error.fmt(f),
            Self::Credentials(error) => write!(f, "no credentials: {error}"),
            Self::Lost(why) => write!(f, "the connection is lost: {why}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // The text of the driver's error has its cause.
            Self::Mysql(error) => error.source().and_then(StdError::source),
            Self::Pool(error) => error.source(),
            Self::Credentials(error) => error.source(),
            Self::Lost(_) => None,
        }
    }
}

impl From<mysql_async::Error> for Error {
    fn from(error: mysql_async::Error) -> Self {
        Self::Mysql(error)
    }
}

impl From<BindError<Error>> for Error {
    fn from(error: BindError<Error>) -> Self {
        Self::Pool(Box::new(error))
    }
}

impl From<AcquireError<Error>> for Error {
    fn from(error: AcquireError<Error>) -> Self {
        Self::Pool(Box::new(BindError::Acquire(error)))
    }
}

/// What an error means for its connection and for the caller.
///
/// ```
/// use cenote_mysql::Class;
///
/// assert!(Class::Conflict.is_retryable() && !Class::Conflict.poisons());
/// assert!(!Class::Broken.is_retryable() && Class::Broken.poisons());
/// assert!(!Class::Denied.is_retryable());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The statement or its data is wrong (syntax, constraint, conversion). A retry would fail
    /// again.
    Statement,
    /// A conflict with other transactions (deadlock, lock timeout). The connection is good, and the
    /// whole transaction is worth another try.
    Conflict,
    /// The server cannot be reached or accepts no connection now (too many connections), or the
    /// pool has none to lend. Worth another try later.
    Refused,
    /// The server does not accept this client: a wrong password, an unknown user or database. A
    /// retry would fail again, and can lock an account.
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

/// Returns what an error of the driver means.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use cenote_mysql::mysql_async::Conn;
/// use cenote_mysql::{Class, classify};
///
/// let error = Conn::from_url("mysql://app@127.0.0.1:1/shop").await.unwrap_err();
/// assert_eq!(classify(&error), Class::Refused);
/// # }
/// ```
pub fn classify(error: &mysql_async::Error) -> Class {
    use mysql_async::Error as Driver;
    match error {
        Driver::Server(error) => by_code(error.code),
        Driver::Driver(error) => of_driver(error),
        Driver::Io(IoError::Io(error)) => of_io(error),
        #[cfg(feature = "rustls")]
        Driver::Io(IoError::Tls(_)) => Class::Broken,
        Driver::Url(_) => Class::Denied,
        Driver::Other(_) => Class::Statement,
    }
}

fn by_code(code: u16) -> Class {
    match code {
        // Lock wait timeout, deadlock, changed since last read.
        1205 | 1213 | 1020 => Class::Conflict,
        // Too many connections, in total or of one user.
        1040 | 1203 | 1226 => Class::Refused,
        // Access denied (to the server, to the database), unknown database, host not allowed,
        // account locked, password expired.
        1044 | 1045 | 1049 | 1129 | 1130 | 1698 | 3118 | 4151 | 1820 | 1862 => Class::Denied,
        // Shutdown, killed, packets out of order or unreadable, idle for too long, connection lost.
        1053 | 1077 | 1079 | 1153..=1161 | 1184 | 1927 | 2006 | 2013 | 4031 => Class::Broken,
        _ => Class::Statement,
    }
}

fn of_driver(error: &DriverError) -> Class {
    match error {
        DriverError::UnknownAuthPlugin { .. }
        | DriverError::MysqlOldPasswordDisabled
        | DriverError::NoKeyFound
        | DriverError::NoClientSslFlagFromServer
        | DriverError::CleartextPluginDisabled => Class::Denied,
        DriverError::FromValue { .. }
        | DriverError::FromRow { .. }
        | DriverError::Params(_)
        | DriverError::MixedParams
        | DriverError::NestedTransaction
        | DriverError::ReadOnlyTransNotSupported
        | DriverError::StmtParamsMismatch { .. }
        | DriverError::StmtParamsNumberExceedsLimit { .. }
        | DriverError::LocalInfile(_)
        | DriverError::BulkExecute(_) => Class::Statement,
        _ => Class::Broken,
    }
}

/// Errors of a connection that was never made.
fn of_io(error: &io::Error) -> Class {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Class::Denied,
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::AddrNotAvailable
        | io::ErrorKind::NotFound => Class::Refused,
        _ => Class::Broken,
    }
}

/// The error of a statement in a transaction that the server has ended.
#[derive(Debug)]
pub(crate) struct Ended;

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the transaction ended before this statement: by a deadlock, or by a statement that \
             commits, like CREATE TABLE",
        )
    }
}

impl StdError for Ended {}
