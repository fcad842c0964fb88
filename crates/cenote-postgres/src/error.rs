//! Errors: what they mean for the connection and for the caller.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use cenote::scope::BindError;
use cenote::{AcquireError, ConfigError};

/// Why a call of the [`Pool`](crate::Pool) failed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_postgres::{Class, Error, Pool};
///
/// let pool = Pool::from_url("postgres://app@127.0.0.1:1/shop").build()?;
/// let error = pool.query("select 1", &[]).await.unwrap_err();
/// assert!(matches!(error, Error::Pool(_)));
/// assert_eq!(error.class(), Class::Refused);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server or the driver has failed.
    Postgres(tokio_postgres::Error),
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
            Self::Postgres(error) => classify(error),
            Self::Pool(error) => match cause(error).map(Self::class) {
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
    pub fn as_postgres(&self) -> Option<&tokio_postgres::Error> {
        match self {
            Self::Postgres(error) => Some(error),
            Self::Pool(error) => cause(error)?.as_postgres(),
            Self::Credentials(_) | Self::Lost(_) => None,
        }
    }

    pub(crate) fn lost(why: &str) -> Self {
        Self::Lost(why.to_owned())
    }
}

/// Returns the error of an open below an error of the pool.
fn cause(error: &BindError<Error>) -> Option<&Error> {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        next = error.source();
    }
    None
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(error) => f.write_str(&told(error)),
            Self::Pool(error) => error.fmt(f),
            Self::Credentials(error) => write!(f, "no credentials: {error}"),
            Self::Lost(why) => write!(f, "the connection is lost: {why}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // The text has the cause of the driver's error, which the driver leaves out.
            Self::Postgres(error) => error.source().and_then(StdError::source),
            Self::Pool(error) => error.source(),
            Self::Credentials(error) => error.source(),
            Self::Lost(_) => None,
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
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

/// Returns the text of an error with its cause.
pub(crate) fn told(error: &tokio_postgres::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// What an error means for its connection and for the caller.
///
/// ```
/// use cenote_postgres::Class;
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
    /// A conflict with other transactions (serialization failure, deadlock, lock timeout). The
    /// connection is good, and the whole transaction is worth another try.
    Conflict,
    /// The server cannot be reached or accepts no connection now (too many connections, starting
    /// up), or the pool has none to lend. Worth another try later.
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
/// use cenote_postgres::tokio_postgres::{NoTls, connect};
/// use cenote_postgres::{Class, classify};
///
/// let error = connect("host=127.0.0.1 port=1 user=app", NoTls).await.err().unwrap();
/// assert_eq!(classify(&error), Class::Refused);
/// # }
/// ```
pub fn classify(error: &tokio_postgres::Error) -> Class {
    if let Some(code) = error.code() {
        return by_code(code.code());
    }
    // The driver shows the kind of an error only by its text.
    let text = error.to_string();
    match error.source().and_then(<dyn StdError>::downcast_ref) {
        _ if error.is_closed() => Class::Broken,
        Some(error) if text.starts_with("error connecting") => of_connect(error),
        _ if text.starts_with("authentication error") => Class::Denied,
        // A value that does not fit into a message.
        _ if text.starts_with("error encoding") => Class::Statement,
        _ if text.starts_with("invalid co") => match text.starts_with("invalid column") {
            true => Class::Statement,
            false => Class::Denied,
        },
        Some(_) => Class::Broken,
        None if ["unexpected message", "error performing TLS", "timeout"]
            .iter()
            .any(|begin| text.starts_with(begin)) =>
        {
            Class::Broken
        }
        None => Class::Statement,
    }
}

fn of_connect(error: &io::Error) -> Class {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Class::Denied,
        _ => Class::Refused,
    }
}

fn by_code(code: &str) -> Class {
    match code {
        // Serialization failure, deadlock, lock not available.
        "40001" | "40P01" | "55P03" => Class::Conflict,
        // Too many connections, starting up or shutting down.
        "53300" | "57P03" => Class::Refused,
        // Wrong password, not allowed to connect, unknown database.
        "28P01" | "28000" | "3D000" => Class::Denied,
        // Shutdown, crash, dropped database, idle timeouts.
        "57P01" | "57P02" | "57P04" | "57P05" | "25P03" | "25P04" => Class::Broken,
        // Connection exceptions and protocol violations.
        _ if code.starts_with("08") => Class::Broken,
        _ => Class::Statement,
    }
}

/// Why a [`Pool`](crate::Pool) could not be built.
///
/// ```
/// use cenote_postgres::{BuildError, Pool};
///
/// let error = Pool::from_url("postgres://localhost/shop?max_size=5").build().unwrap_err();
/// assert!(matches!(error, BuildError::Url(_)));
/// assert!(error.to_string().contains("unknown option `max_size`"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The driver cannot parse the URL.
    Url(tokio_postgres::Error),
    /// A setting of the pool has a wrong value.
    Config(ConfigError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => write!(f, "the URL cannot be used: {}", told(error)),
            Self::Config(error) => error.fmt(f),
        }
    }
}

impl StdError for BuildError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // The text of these errors is part of ours.
            Self::Url(error) => error.source().and_then(StdError::source),
            Self::Config(error) => error.source(),
        }
    }
}
