//! The errors of building, acquiring and publishing.

use std::error::Error as StdError;
use std::fmt;

use cenote::ConfigError;

/// Why a channel could not be acquired. If no connection could be had, the text says why, and the
/// cause is the `AcquireError` of the connections.
pub type AcquireError = cenote::AcquireError<Box<dyn StdError + Send + Sync>>;

/// Why a message was not published. See [`Channel::publish`](crate::Channel::publish).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The driver returned an error.
    Lapin(lapin::Error),
    /// The server could not take charge of the message.
    Refused,
    /// No queue is bound that gets the message.
    Returned,
}

impl From<lapin::Error> for Error {
    fn from(error: lapin::Error) -> Self {
        Self::Lapin(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lapin(error) => error.fmt(f),
            Self::Refused => f.write_str("the server refused the message: publish it again"),
            Self::Returned => f.write_str("no queue gets the message: declare or bind one"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // Its text is ours.
            Self::Lapin(error) => error.source(),
            Self::Refused | Self::Returned => None,
        }
    }
}

/// Why a [`Pool`](crate::Pool) could not be built.
///
/// ```
/// use cenote_amqp::{BuildError, Pool};
///
/// let error = Pool::from_url("http://guest:secret-word@localhost").build().unwrap_err();
/// assert!(matches!(error, BuildError::Url));
/// assert!(!error.to_string().contains("secret-word"));
///
/// let error = Pool::from_url("amqp://localhost").max_size(0).build().unwrap_err();
/// assert!(error.to_string().contains("max_size"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The URL cannot be parsed. The error of the driver is left out, because it can contain the
    /// URL and so the password.
    Url,
    /// A setting of the pool has a wrong value.
    Config(ConfigError),
    /// `channels_per_connection` is zero, or more than a connection can have.
    ChannelsPerConnection(usize),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url => f.write_str(
                "the URL cannot be parsed: write it as `amqp://user:password@host:5672/%2f`",
            ),
            Self::Config(error) => error.fmt(f),
            Self::ChannelsPerConnection(count) => write!(
                f,
                "`channels_per_connection` is {count}: it must be at least 1, and at most 65535"
            ),
        }
    }
}

impl StdError for BuildError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // Its text is ours.
            Self::Config(error) => error.source(),
            Self::Url | Self::ChannelsPerConnection(_) => None,
        }
    }
}
