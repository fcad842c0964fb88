//! The settings of a database, from the configuration of Rocket.

use std::fmt;
use std::time::Duration;

use cenote::Config;
use rocket::figment::providers::Serialized;
use rocket::figment::{Error, Figment};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::pool::BuildError;

/// What a setting of the pool is called in Rocket.
const NAMES: [(&str, &str); 3] = [
    ("max_size", "max_connections"),
    ("min_size", "min_connections"),
    ("acquire_timeout", "connect_timeout"),
];

/// Rocket's own settings of a pool. Durations are in seconds.
#[derive(Deserialize)]
struct Rockets {
    min_connections: Option<usize>,
    max_connections: usize,
    connect_timeout: u64,
    idle_timeout: Option<u64>,
    extensions: Option<Vec<String>>,
}

/// The settings below `databases.NAME`, from all sources of Rocket: `Rocket.toml`, the environment
/// and the code.
pub struct Settings<'a>(&'a Figment);

impl<'a> Settings<'a> {
    pub(crate) fn new(figment: &'a Figment) -> Self {
        Self(figment)
    }

    /// Returns the value of this name. The error tells the name, and the file that it is in.
    pub fn value<T: DeserializeOwned>(&self, name: &str) -> Result<T, BuildError> {
        let value = self.0.extract_inner(name);
        value.map_err(|error| named("", error))
    }

    /// Returns the settings of the pool: those of the table `pool`, and what Rocket has other names
    /// for. If both are set, the table counts.
    ///
    /// | Rocket | cenote |
    /// |---|---|
    /// | `max_connections`, by default four per worker | `max_size` |
    /// | `min_connections` | `min_size` |
    /// | `connect_timeout` in seconds, by default 5 | `acquire_timeout` |
    /// | `idle_timeout` in seconds | `idle_timeout` |
    pub fn pool(&self) -> Result<Config, BuildError> {
        let rockets: Result<Rockets, _> = self.0.extract();
        let rockets = rockets.map_err(|error| named("", error))?;
        if rockets.extensions.is_some() {
            return Err("setting `extensions`: this pool loads none".into());
        }
        let defaults = Config::default();
        let idle_timeout = rockets.idle_timeout.map(Duration::from_secs);
        let config = Config {
            max_size: rockets.max_connections,
            min_size: rockets.min_connections.unwrap_or(defaults.min_size),
            acquire_timeout: Some(Duration::from_secs(rockets.connect_timeout)),
            idle_timeout: idle_timeout.or(defaults.idle_timeout),
            ..defaults
        };
        let config = Figment::from(Serialized::defaults(config))
            .select(self.0.profile().clone())
            .merge(self.0.focus("pool"));
        config.extract().map_err(|error| named("pool.", error))
    }

    /// Returns the config of a driver crate, with the settings of its pool. A setting that neither
    /// Rocket nor the driver knows is an error.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlx"))]
    pub(crate) fn driver<C: DeserializeOwned>(&self) -> Result<C, BuildError> {
        let pool = self.pool()?;
        self.value::<String>("url")?;
        let own: Result<rocket::figment::value::Dict, _> = self.0.extract();
        let mut own = own.map_err(|error| named("", error))?;
        own.retain(|name, _| {
            name != "idle_timeout" && NAMES.iter().all(|(_, rocket)| name != rocket)
        });
        own.remove("pool");
        let config = Figment::from(Serialized::defaults(own)).merge(("pool", pool));
        config.extract().map_err(|mut error| {
            error.metadata = None; // it would name this file
            named("", error)
        })
    }
}

impl fmt::Debug for Settings<'_> {
    /// Leaves out the values, because the URL contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

/// Returns the text of an error, which begins with the name of the setting.
fn named(table: &str, error: Error) -> BuildError {
    let mut text = match error.path.is_empty() {
        true => error.kind.to_string(),
        false => format!("setting `{table}{}`: {}", error.path.join("."), error.kind),
    };
    if let Some(place) = error.metadata {
        text = match &place.source {
            Some(source) => format!("{text} ({}, {source})", place.name),
            None => format!("{text} ({})", place.name),
        };
    }
    text.into()
}

/// Adds Rocket's names to a text that has those of the pool.
pub(crate) fn in_rockets_words(text: &str) -> String {
    let add = |text: String, (ours, rockets): (&str, &str)| {
        let both = format!("`{ours}` (in Rocket `{rockets}`)");
        text.replacen(&format!("`{ours}`"), &both, 1)
    };
    NAMES.into_iter().fold(text.to_owned(), add)
}
