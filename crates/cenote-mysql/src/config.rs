//! Settings as data, for a file.

use std::fmt;

use crate::builder::Builder;
use crate::template::Reset;

/// The settings of a [`Pool`](crate::Pool) as plain data. With the feature `serde` they can be read
/// from a file. Unknown fields are refused.
///
/// ```
/// # #[cfg(feature = "serde")] fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let file = r#"
///     url = "mysql://app@localhost/shop"
///     settings = ["SET time_zone = '+00:00'"]
///     reset = "never"
///
///     [pool]
///     max_size = 20
///     acquire_timeout = "3s"
/// "#;
/// let config: cenote_mysql::Config = toml::from_str(file)?;
/// let pool = cenote_mysql::Pool::from_config(config).build()?;
/// assert_eq!(pool.status().max_size, 20);
/// # Ok(()) }
/// # #[cfg(not(feature = "serde"))] fn main() {}
/// ```
#[derive(Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct Config {
    /// The URL. Default: the user `root` on this machine.
    pub url: String,
    /// See [`Builder::setting`](crate::Builder::setting). Default none.
    pub settings: Vec<String>,
    /// See [`Reset`]. Default [`Reset::Always`].
    pub reset: Reset,
    /// See [`Builder::cancel_on_server`](crate::Builder::cancel_on_server). Default true.
    pub cancel_on_server: bool,
    /// The settings of the pool.
    pub pool: cenote::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: String::from("mysql://root@localhost"),
            settings: Vec::new(),
            reset: Reset::default(),
            cancel_on_server: true,
            pool: cenote::Config::default(),
        }
    }
}

impl Config {
    pub(crate) fn into_builder(self) -> Builder {
        let builder = Builder::from_url(self.url)
            .config(self.pool)
            .reset(self.reset)
            .cancel_on_server(self.cancel_on_server);
        self.settings.into_iter().fold(builder, Builder::setting)
    }
}

impl fmt::Debug for Config {
    /// Leaves out the URL, which contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("settings", &self.settings)
            .field("reset", &self.reset)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}
