//! The error of the builder.

use std::error::Error as StdError;
use std::fmt;

use cenote::ConfigError;

/// Why a [`Db`](crate::Db) could not be built.
///
/// ```
/// use cenote_rusqlite::{BuildError, Db};
///
/// let error = Db::url("postgres://localhost/shop").build().unwrap_err();
/// assert!(matches!(error, BuildError::Scheme(_)));
///
/// let error = Db::file("shop.db").max_size(0).build().unwrap_err();
/// assert!(matches!(error, BuildError::Config(_)));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The URL is for another database.
    Scheme(String),
    /// The URL has a setting of the pool, which SQLite would ignore.
    Parameter(String),
    /// The URL asks for a shared cache, in which readers fail while the writer works.
    SharedCache,
    /// A setting of the pool has a wrong value.
    Config(ConfigError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(found) => write!(
                f,
                "the URL begins with `{found}://`: a URL of SQLite begins with `file:` or \
                 `sqlite://`"
            ),
            Self::Parameter(found) => write!(
                f,
                "the URL has the parameter `{found}`, which SQLite would ignore: call the setter \
                 of the builder, or use `Config`"
            ),
            Self::SharedCache => f.write_str(
                "the URL has `cache=shared`, with which readers fail while the writer works: use \
                 `:memory:`, whose connections share it, or `file:/name?vfs=memdb`, which all \
                 pools of the process share",
            ),
            Self::Config(error) => error.fmt(f),
        }
    }
}

impl StdError for BuildError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // The text of this error is ours.
            Self::Config(error) => error.source(),
            Self::Scheme(_) | Self::Parameter(_) | Self::SharedCache => None,
        }
    }
}
