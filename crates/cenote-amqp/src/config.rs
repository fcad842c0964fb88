//! Settings as data, for a file.

use std::fmt;

use crate::builder::{Builder, CHANNELS_PER_CONNECTION};

/// The settings of a [`Pool`](crate::Pool) as plain data. With the feature `serde` they can be read
/// from a file. Unknown fields are refused.
///
/// ```
/// # #[cfg(feature = "serde")] fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let file = r#"
///     url = "amqp://guest:guest@localhost:5672/%2f"
///     confirms = true
///
///     [pool]
///     max_size = 20
///     acquire_timeout = "3s"
/// "#;
/// let config: cenote_amqp::Config = toml::from_str(file)?;
/// let pool = cenote_amqp::Pool::from_config(config).build()?;
/// assert_eq!((pool.status().max_size, pool.connections().status().max_size), (20, 2));
/// # Ok(()) }
/// # #[cfg(not(feature = "serde"))] fn main() {}
/// ```
#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Config {
    /// The URL. Default: the user `guest` on this machine.
    pub url: String,
    /// See [`Builder::channels_per_connection`](crate::Builder::channels_per_connection). Default
    /// 10.
    pub channels_per_connection: usize,
    /// See [`Builder::confirms`](crate::Builder::confirms). Default false.
    pub confirms: bool,
    /// The settings of the pool of channels.
    pub pool: cenote::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: String::from("amqp://guest:guest@localhost:5672/%2f"),
            channels_per_connection: CHANNELS_PER_CONNECTION,
            confirms: false,
            pool: cenote::Config::default(),
        }
    }
}

impl Config {
    pub(crate) fn into_builder(self) -> Builder {
        Builder::new(self.url)
            .config(self.pool)
            .channels_per_connection(self.channels_per_connection)
            .confirms(self.confirms)
    }
}

impl fmt::Debug for Config {
    /// Leaves out the URL, which contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("channels_per_connection", &self.channels_per_connection)
            .field("confirms", &self.confirms)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}
