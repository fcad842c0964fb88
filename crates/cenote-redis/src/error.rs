//! Errors: what they mean for the caller, and how errors of the pool fit into the type of `redis`.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cenote::scope::BindError;
use cenote::{AcquireError, OpenError};
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// What an error means for its connection and for the caller. See [`classify`].
///
/// ```
/// use cenote_redis::Class;
///
/// assert!(Class::Refused.is_retryable() && !Class::Refused.poisons());
/// assert!(!Class::Broken.is_retryable() && Class::Broken.poisons());
/// assert!(!Class::Denied.is_retryable());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The command or its data is wrong. The connection is good, and a retry would fail again.
    Command,
    /// The server cannot do it now (loading, no master, read-only, too many clients), it cannot be
    /// reached, or the pool has no connection to lend. The command did not run. Worth another try
    /// later.
    Refused,
    /// The server does not accept this client: a wrong password, a missing permission, a database
    /// that is not there. A retry would fail again.
    Denied,
    /// The connection is lost or has not answered in time. The command may or may not have run.
    Broken,
}

impl Class {
    /// Returns whether the connection must be closed.
    pub fn poisons(self) -> bool {
        self == Self::Broken
    }

    /// Returns whether the same command is worth another try. Not after a broken connection,
    /// because the command may have run. A caller whose command may run twice can retry that, too.
    pub fn is_retryable(self) -> bool {
        self == Self::Refused
    }
}

/// Returns what an error means.
///
/// ```
/// use cenote_redis::redis::{ErrorKind, RedisError, ServerErrorKind};
/// use cenote_redis::{Class, classify};
///
/// let loading = RedisError::from((ErrorKind::Server(ServerErrorKind::BusyLoading), "loading"));
/// assert_eq!(classify(&loading), Class::Refused);
/// let wrong = RedisError::from((ErrorKind::AuthenticationFailed, "wrong password"));
/// assert_eq!(classify(&wrong), Class::Denied);
/// ```
pub fn classify(error: &RedisError) -> Class {
    if let Some(error) = pool_error(error) {
        // A place on a lane, or a connection: the command was not sent.
        return match cause(error).map(classify) {
            Some(Class::Denied) => Class::Denied,
            _ => Class::Refused,
        };
    }
    let not_sent = [NO_LANE, FULL, QUEUE_FULL];
    if error.is_connection_refusal() || not_sent.iter().any(|what| is(error, what)) {
        return Class::Refused;
    }
    match error.kind() {
        ErrorKind::Io | ErrorKind::Parse => Class::Broken,
        ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => Class::Denied,
        ErrorKind::Server(ServerErrorKind::NoPerm) => Class::Denied,
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ReadOnly,
        ) => Class::Refused,
        _ => by_code(error),
    }
}

/// Classifies by what only the text of the server says.
fn by_code(error: &RedisError) -> Class {
    match error.code() {
        Some("WRONGPASS" | "NOAUTH" | "DENIED") => return Class::Denied,
        Some("BUSY" | "MISCONF" | "NOREPLICAS" | "OOM") => return Class::Refused,
        _ => {}
    }
    let text = error.to_string();
    if text.contains("max number of clients") {
        Class::Refused
    } else if text.contains("switch database") || text.contains("DB index is out of range") {
        Class::Denied
    } else {
        Class::Command
    }
}

/// Returns whether the connection cannot be trusted after this error.
pub(crate) fn is_broken(error: &RedisError) -> bool {
    classify(error).poisons() && !is(error, NO_ANSWER)
}

/// Returns the error of the pool inside `error`, if there is one. A timeout tells who holds the
/// connections, since when, and at which line.
///
/// The type of `redis` has no variant for it, so it is inside an I/O error. Do not send its text to
/// a client: it has file names of the program.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::AcquireError;
/// use cenote::scope::BindError;
/// use cenote_redis::redis::AsyncCommands;
/// use cenote_redis::{Pool, pool_error};
///
/// let mut redis = Pool::from_url("redis://localhost:1").build()?;
/// redis.close();
/// let error = redis.get::<_, Option<String>>("key").await.unwrap_err();
/// let closed = pool_error(&error).unwrap();
/// assert!(matches!(closed, BindError::Acquire(AcquireError::Closed { .. })));
/// # Ok(()) }
/// ```
pub fn pool_error(error: &RedisError) -> Option<&BindError<RedisError>> {
    let inner: &PoolError = inner(error)?.downcast_ref()?;
    Some(&inner.0)
}

/// Returns whether `error` says that no connection, or no place on a lane, came free in time. The
/// command was not sent.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_redis::redis::AsyncCommands;
/// use cenote_redis::{Pool, is_timeout};
///
/// let mut redis = Pool::from_url("redis://localhost:1").build()?;
/// let error = redis.get::<_, Option<String>>("key").await.unwrap_err();
/// assert!(!is_timeout(&error), "it was refused");
/// # Ok(()) }
/// ```
pub fn is_timeout(error: &RedisError) -> bool {
    let timed_out = |error: &BindError<RedisError>| {
        matches!(error, BindError::Acquire(AcquireError::TimedOut(_)))
    };
    pool_error(error).is_some_and(timed_out) || is(error, NO_LANE) || is(error, FULL)
}

/// Returns what is inside the I/O error of an error.
fn inner(error: &RedisError) -> Option<&(dyn StdError + Send + Sync + 'static)> {
    io_error(error)?.get_ref()
}

/// Returns the I/O error that an error is about, if it is about one.
pub(crate) fn io_error(error: &RedisError) -> Option<&io::Error> {
    let source = error.source()?;
    match source.downcast_ref::<Arc<dyn StdError + Send + Sync>>() {
        Some(shared) => shared.downcast_ref::<io::Error>(),
        None => source.downcast_ref(),
    }
}

/// Returns the error of the driver that an error of the pool is about.
fn cause(error: &BindError<RedisError>) -> Option<&RedisError> {
    let open = match error {
        BindError::Acquire(AcquireError::Open { error, .. }) => error,
        BindError::Acquire(AcquireError::TimedOut(seen)) => seen.last_open_error()?,
        BindError::Acquire(AcquireError::Unavailable(seen)) => seen.cause.as_ref()?,
        _ => return None,
    };
    match open {
        OpenError::Failed(cause) => Some(cause),
        _ => None,
    }
}

pub(crate) fn from_acquire(error: AcquireError<RedisError>) -> RedisError {
    from_bind(BindError::Acquire(error))
}

pub(crate) fn from_bind(error: BindError<RedisError>) -> RedisError {
    let kind = match &error {
        BindError::Acquire(AcquireError::TimedOut(_)) | BindError::InUse { .. } => {
            io::ErrorKind::TimedOut
        }
        BindError::Acquire(AcquireError::Open { .. }) => io::ErrorKind::ConnectionRefused,
        BindError::Acquire(AcquireError::Closed { .. }) => io::ErrorKind::NotConnected,
        _ => io::ErrorKind::WouldBlock,
    };
    io::Error::new(kind, PoolError(error)).into()
}

/// An error of the pool inside an `io::Error`.
#[derive(Debug)]
struct PoolError(BindError<RedisError>);

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for PoolError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

/// Returns the error of a command that cannot run here.
pub(crate) fn refused(why: String) -> RedisError {
    (ErrorKind::Client, "the command was not sent", why).into()
}

/// Returns the error of a session whose connection is gone.
pub(crate) fn lost() -> RedisError {
    let text = "the connection was lost, and what was open on it";
    io::Error::new(io::ErrorKind::NotConnected, text).into()
}

/// Returns the error of a command that was not answered in time.
pub(crate) fn no_answer(limit: Option<Duration>) -> RedisError {
    let limit = limit.unwrap_or_default();
    let text = format!("{NO_ANSWER} within {limit:?}: see `response_timeout`");
    io::Error::new(io::ErrorKind::TimedOut, Said(NO_ANSWER, text)).into()
}

/// Returns the error of a caller that waited for a lane to be opened.
pub(crate) fn no_lane() -> RedisError {
    let text = format!("{NO_LANE}: see `acquire_timeout`");
    io::Error::new(io::ErrorKind::TimedOut, Said(NO_LANE, text)).into()
}

/// Returns the error of a caller that got no place on a lane. The text says what was seen.
pub(crate) fn lanes_full(text: String) -> RedisError {
    io::Error::new(io::ErrorKind::TimedOut, Said(FULL, text)).into()
}

/// As [`lanes_full`], for a caller that was not allowed to wait.
pub(crate) fn queue_full(text: String) -> RedisError {
    io::Error::new(io::ErrorKind::WouldBlock, Said(QUEUE_FULL, text)).into()
}

const FULL: &str = "the lanes are full";
const QUEUE_FULL: &str = "too many wait for a place on a lane";
const NO_ANSWER: &str = "the command may have run, but was not answered";
const NO_LANE: &str = "no lane could be opened in time, and the command was not sent";

fn is(error: &RedisError, what: &'static str) -> bool {
    let said: Option<&Said> = inner(error).and_then(|inner| inner.downcast_ref());
    said.is_some_and(|said| said.0 == what)
}

/// An error of ours: which one, and its text.
#[derive(Debug)]
struct Said(&'static str, String);

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.1)
    }
}

impl StdError for Said {}
