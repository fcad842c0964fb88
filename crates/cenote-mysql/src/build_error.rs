//! Why a pool could not be built.

use std::error::Error as StdError;
use std::fmt;

use cenote::ConfigError;
use mysql_async::UrlError;

/// Why a [`Pool`](crate::Pool) could not be built.
///
/// ```
/// use cenote_mysql::{BuildError, Pool};
///
/// let error = Pool::from_url("mysql://localhost/shop?pool_max=5").build().unwrap_err();
/// assert!(matches!(error, BuildError::PoolOption { .. }));
/// assert!(error.to_string().contains("`max_size`"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The driver cannot parse the URL.
    Url(UrlError),
    /// An option for the driver's own pool, which this pool would not respect.
    PoolOption {
        /// The option.
        option: String,
        /// The setting of this pool that has its meaning.
        instead: &'static str,
    },
    /// TLS was asked for, and the feature `rustls` is off.
    NoTls,
    /// A setting of the pool has a wrong value.
    Config(ConfigError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => write!(f, "the URL cannot be used: {error}"),
            Self::PoolOption { option, instead } => {
                write!(
                    f,
                    "`{option}` is for the driver's own pool: set `{instead}`"
                )
            }
            Self::NoTls => f.write_str("TLS needs the feature `rustls` of cenote-mysql"),
            Self::Config(error) => error.fmt(f),
        }
    }
}

impl StdError for BuildError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // The text of these errors is part of ours.
            Self::Url(error) => error.source(),
            Self::Config(error) => error.source(),
            Self::PoolOption { .. } | Self::NoTls => None,
        }
    }
}
