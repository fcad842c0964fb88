//! The error of the builder.

use std::error::Error as StdError;
use std::fmt;

use cenote::ConfigError;
use sqlx::Error;

use crate::url;

/// Why a [`Db`](crate::Db) could not be built.
///
/// ```
/// # #[cfg(feature = "sqlite")] fn main() {
/// use cenote_sqlx::{BuildError, Db};
///
/// let error = Db::sqlite("sqlite://shop.db?cenote.max_size=many").build().unwrap_err();
/// assert!(matches!(error, BuildError::Parameter(_)));
/// assert!(error.to_string().contains("`cenote.max_size`"));
///
/// let error = Db::sqlite("mysql://localhost/shop").build().unwrap_err();
/// assert!(matches!(error, BuildError::Scheme { .. }));
/// # }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The URL is for another database.
    Scheme {
        /// The database that was asked for.
        database: &'static str,
        /// The scheme of the URL.
        found: String,
        /// The schemes of this database.
        expected: &'static [&'static str],
    },
    /// The URL is for none of the databases that are enabled as features of this crate.
    UnknownScheme {
        /// The scheme of the URL; empty if it has none.
        found: String,
        /// How a URL can begin.
        expected: &'static [&'static str],
    },
    /// sqlx cannot parse the URL.
    Url(Error),
    /// A parameter of the URL is unknown or has a wrong value.
    Parameter(String),
    /// A setting of the pool has a wrong value.
    Config(ConfigError),
    /// A database in memory exists in one connection only, unless it is shared
    /// (`sqlite::memory:?cache=shared`).
    InMemory {
        /// How many connections were asked for.
        max_size: usize,
    },
    /// This database has no users and passwords.
    NoCredentials,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme {
                database,
                found,
                expected,
            } => {
                let expected = expected.join("://` or `");
                write!(
                    f,
                    "the URL begins with `{found}:`: a URL of {database} begins with `{expected}://`"
                )?;
                match url::constructor(found) {
                    Some(right) => write!(f, ", for this one call `{right}`"),
                    None => Ok(()),
                }
            }
            Self::UnknownScheme { found, expected } => {
                match found.is_empty() {
                    true => f.write_str("the URL names no database")?,
                    false => write!(f, "the URL begins with `{found}:`")?,
                }
                write!(
                    f,
                    ": it can begin with `{}`, by the features of `cenote-sqlx` that are enabled",
                    expected.join("`, `")
                )
            }
            Self::Url(error) => write!(f, "the URL cannot be parsed: {error}"),
            Self::Parameter(text) => write!(f, "wrong parameter in the URL: {text}"),
            Self::Config(error) => error.fmt(f),
            Self::InMemory { max_size } => write!(
                f,
                "`max_size` is {max_size}, but a database in memory exists in one connection only: \
                 set `max_size` to 1, share it (`sqlite::memory:?cache=shared`), or use a file"
            ),
            Self::NoCredentials => f.write_str("this database has no users and passwords"),
        }
    }
}

impl StdError for BuildError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // The text of these errors is part of ours.
            Self::Url(error) => error.source(),
            Self::Config(error) => error.source(),
            Self::Scheme { .. }
            | Self::UnknownScheme { .. }
            | Self::Parameter(_)
            | Self::InMemory { .. }
            | Self::NoCredentials => None,
        }
    }
}
