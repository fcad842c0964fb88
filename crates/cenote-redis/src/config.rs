//! Settings of a pool of connections to Redis, as plain data.

use std::time::Duration;

/// Everything that can be set by data. [`Builder`](crate::Builder) has a setter for each field, and
/// [`Pool::from_config`](crate::Pool::from_config) takes it.
///
/// With the feature `serde` it can be read from a file. Durations are written as people write them
/// (`"30s"`), and `"off"` stands for `None`. Unknown fields are refused.
///
/// ```
/// # #[cfg(feature = "serde")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let file = r#"
///     url = "redis://localhost/2"
///     mux = 4
///     response_timeout = "500ms"
///
///     [pool]
///     max_size = 20
///     acquire_timeout = "1s"
/// "#;
/// let config: cenote_redis::Config = toml::from_str(file)?;
/// assert_eq!((config.mux, config.pool.max_size), (4, 20));
///
/// let redis = cenote_redis::Pool::from_config(config).build()?;
/// assert_eq!(redis.pool().config().max_size, 20);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "serde"))]
/// # fn main() {}
/// ```
#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Config {
    /// Where the server is. Default `redis://127.0.0.1`.
    pub url: String,
    /// How many lanes there are: connections that all callers of the handle share, beside the
    /// `max_size` connections that are lent. Default 1. Zero: every command has a connection of its
    /// own while it runs.
    pub mux: usize,
    /// How many commands may be in flight per lane. Further callers wait, first come, first served,
    /// for `acquire_timeout`. Default 512, at least 1. A pipeline counts as one.
    pub lane_depth: usize,
    /// How long the answer to a command may take. Default 5 s; `None`: for ever. Blocking commands
    /// have no such limit.
    #[cfg_attr(feature = "serde", serde(with = "crate::human"))]
    pub response_timeout: Option<Duration>,
    /// The settings of the pool.
    pub pool: cenote::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: "redis://127.0.0.1".to_owned(),
            mux: 1,
            lane_depth: 512,
            response_timeout: Some(Duration::from_secs(5)),
            pool: cenote::Config::default(),
        }
    }
}

impl std::fmt::Debug for Config {
    /// Leaves out the URL, which may contain a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("mux", &self.mux)
            .field("lane_depth", &self.lane_depth)
            .field("response_timeout", &self.response_timeout)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}
