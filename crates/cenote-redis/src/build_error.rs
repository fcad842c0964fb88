//! The error of the builder.

use std::error::Error as StdError;
use std::fmt;

use cenote::ConfigError;
use redis::RedisError;

/// Why a [`Pool`](crate::Pool) could not be built.
///
/// ```
/// use cenote_redis::{BuildError, Pool};
///
/// let error = Pool::from_url("http://localhost").build().unwrap_err();
/// assert!(matches!(error, BuildError::Url(_)));
///
/// let error = Pool::from_url("redis://localhost?protocl=resp3").build().unwrap_err();
/// assert!(error.to_string().contains("`protocl`"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The URL cannot be parsed.
    Url(RedisError),
    /// The URL has a parameter that has no meaning.
    Parameter(String),
    /// A setting of the pool has a wrong value.
    Config(ConfigError),
    /// `lane_depth` is zero.
    LaneDepth,
    /// TLS was asked for and cannot be had. The text says why.
    Tls(String),
    /// Connections of this kind do not exist on this operating system.
    Address(String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => write!(f, "the URL cannot be parsed: {error}"),
            Self::Parameter(name) => write!(
                f,
                "the URL has the unknown parameter `{name}`: it can have `protocol`, and for a \
                 Unix socket `db`, `user` and `pass`"
            ),
            Self::Config(error) => error.fmt(f),
            Self::LaneDepth => f.write_str("`lane_depth` is 0: it must be at least 1"),
            Self::Tls(why) => write!(f, "no TLS: {why}"),
            Self::Address(address) => write!(f, "`{address}` cannot be reached from here"),
        }
    }
}

impl StdError for BuildError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // The text of these errors is part of ours.
            Self::Url(error) => error.source(),
            Self::Config(error) => error.source(),
            _ => None,
        }
    }
}
