//! Settings as plain data.

use std::time::Duration;

/// How long a statement waits for a writer in another process.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How many statements `prepare_cached` keeps, as in rusqlite.
pub(crate) const STATEMENT_CACHE: usize = 16;

/// Everything that can be set on a [`Db`](crate::Db), as plain data. [`Db::from_config`] takes it.
///
/// With the feature `serde` it can be read from a file. Unknown fields are refused.
///
/// ```
/// # #[cfg(feature = "serde")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_rusqlite::{Config, Db};
///
/// let file = r#"
///     url = "file:shop.db?mode=rw"
///     busy_timeout = "10s"
///     statement_cache = 100
///     settings = ["PRAGMA cache_size = -8000"]
///     [pool]
///     max_size = 4
///     idle_timeout = "off"
/// "#;
/// let config: Config = toml::from_str(file)?;
/// assert_eq!((config.busy_timeout.as_secs(), config.pool.max_size), (10, 4));
/// let db = Db::from_config(config).build()?;
/// assert_eq!(db.pool().status().max_size, 4);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "serde"))]
/// # fn main() {}
/// ```
///
/// [`Db::from_config`]: crate::Db::from_config
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Config {
    /// Where the database is: the name of a file, or a URL. See [`Db::url`](crate::Db::url).
    /// Default `:memory:`.
    pub url: String,
    /// How long a statement waits for a writer in another process. Default 5 s; zero: not at all.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub busy_timeout: Duration,
    /// How many statements `prepare_cached` keeps per connection. Default 16; zero: none.
    pub statement_cache: usize,
    /// SQL that runs on every new connection. Default: none.
    pub settings: Vec<String>,
    /// The settings of the pool. `max_size`, `min_size` and `min_idle` do not count the writer.
    pub pool: cenote::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: String::from(":memory:"),
            busy_timeout: BUSY_TIMEOUT,
            statement_cache: STATEMENT_CACHE,
            settings: Vec::new(),
            pool: cenote::Config::default(),
        }
    }
}
