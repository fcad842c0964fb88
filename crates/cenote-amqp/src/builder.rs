//! The builder: a URL, the properties of the driver, and the settings of the pool.

use std::fmt;

use cenote::second_level::On;
use lapin::ConnectionProperties;
use lapin::tcp::OwnedTLSConfig;
use lapin::uri::AMQPUri;

use crate::error::BuildError;
use crate::manager::{Channels, Connections};
use crate::pool::Pool;

/// One connection carries the channels of a pool of the default size.
pub(crate) const CHANNELS_PER_CONNECTION: usize = 10;

/// Builds a [`Pool`]. Building opens no connection.
///
/// There is one setter for each field of [`cenote::Config`], for the pool of the channels. A setter
/// for something that can be off takes `None`.
///
/// ```
/// use std::time::Duration;
/// use cenote_amqp::Pool;
///
/// let pool = Pool::from_url("amqp://guest:guest@localhost:5672/%2f")
///     .name("orders")
///     .max_size(40)
///     .channels_per_connection(10)
///     .confirms(true)
///     .acquire_timeout(Duration::from_secs(3))
///     .build()?;
/// assert_eq!((pool.name(), pool.connections().name()), ("orders", "orders (connections)"));
/// assert_eq!(pool.connections().status().max_size, 4);
/// # Ok::<_, cenote_amqp::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    url: String,
    properties: ConnectionProperties,
    tls: OwnedTLSConfig,
    channels_per_connection: usize,
    confirms: bool,
    config: cenote::Config,
    customize: Option<Box<Customize<On<Channels>>>>,
    customize_connections: Option<Box<Customize<Connections>>>,
}

type Customize<M> = dyn FnOnce(cenote::Builder<M>) -> cenote::Builder<M>;

/// Writes one setter per field of [`cenote::Config`].
macro_rules! settings {
    ($($field:ident: $type:ty;)*) => {
        impl Builder {$(
            #[doc = concat!("Sets [`cenote::Config::", stringify!($field), "`].")]
            pub fn $field(mut self, $field: $type) -> Self {
                self.config.$field = $field.into();
                self
            }
        )*}
    };
}

cenote::for_each_setting!(settings);

impl Builder {
    pub(crate) fn new(url: String) -> Self {
        Self {
            url,
            properties: ConnectionProperties::default(),
            tls: OwnedTLSConfig::default(),
            channels_per_connection: CHANNELS_PER_CONNECTION,
            confirms: false,
            config: cenote::Config::default(),
            customize: None,
            customize_connections: None,
        }
    }

    /// Sets [`cenote::Config::name`].
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = Some(name.into());
        self
    }

    /// Takes all settings of the pool from `config`.
    pub fn config(mut self, config: cenote::Config) -> Self {
        self.config = config;
        self
    }

    /// Sets how many channels share a connection. Default 10. There are as many connections as are
    /// needed for `max_size` channels.
    pub fn channels_per_connection(mut self, count: usize) -> Self {
        self.channels_per_connection = count;
        self
    }

    /// Sets whether the server confirms what is published, on all channels of the pool. Default
    /// false. A transaction is not possible on such a channel.
    pub fn confirms(mut self, confirms: bool) -> Self {
        self.confirms = confirms;
        self
    }

    /// Sets the properties of the driver, like the name of the connection and the provider of the
    /// password. Do not turn on its recovery: the pool replaces connections that are lost.
    pub fn properties(mut self, properties: ConnectionProperties) -> Self {
        self.properties = properties;
        self
    }

    /// Sets certificates for `amqps://` connections. TLS needs a feature of the driver, like
    /// `rustls`: add `lapin` with that feature to your own dependencies.
    pub fn tls(mut self, tls: OwnedTLSConfig) -> Self {
        self.tls = tls;
        self
    }

    /// Changes the builder of the pool of channels: for observers, hooks and a breaker.
    pub fn customize(
        mut self,
        code: impl FnOnce(cenote::Builder<On<Channels>>) -> cenote::Builder<On<Channels>> + 'static,
    ) -> Self {
        self.customize = Some(Box::new(code));
        self
    }

    /// Changes the builder of the pool of connections, for example its `max_lifetime`.
    ///
    /// ```
    /// use cenote_amqp::Pool;
    ///
    /// let pool = Pool::from_url("amqp://localhost")
    ///     .customize_connections(|connections| connections.max_size(3).max_lifetime(None))
    ///     .build()?;
    /// assert_eq!(pool.connections().config().max_lifetime, None);
    /// # Ok::<_, cenote_amqp::BuildError>(())
    /// ```
    pub fn customize_connections(
        mut self,
        code: impl FnOnce(cenote::Builder<Connections>) -> cenote::Builder<Connections> + 'static,
    ) -> Self {
        self.customize_connections = Some(Box::new(code));
        self
    }

    /// Builds the pool, or refuses a wrong value. Opens no connection; `warm` does.
    pub fn build(self) -> Result<Pool, BuildError> {
        let count = self.channels_per_connection;
        let channels = u16::try_from(count).ok().filter(|count| *count > 0);
        let channels = channels.ok_or(BuildError::ChannelsPerConnection(count))?;
        let connections = Connections {
            uri: self.url.parse::<AMQPUri>().map_err(|_| BuildError::Url)?,
            properties: self.properties,
            tls: self.tls,
            channels,
        };
        let name = self.config.name.as_ref();
        let below = cenote::Config {
            name: name.map(|name| format!("{name} (connections)")),
            max_size: self.config.max_size.div_ceil(count),
            open_timeout: self.config.open_timeout,
            close_timeout: self.config.close_timeout,
            ..cenote::Config::default()
        };
        let below = cenote::Pool::builder(connections).config(below);
        let below = match self.customize_connections {
            Some(customize) => customize(below),
            None => below,
        };
        let below = below.build().map_err(BuildError::Config)?;
        let confirms = self.confirms;
        let pool = cenote::Pool::on(&below, Channels { confirms });
        let pool = pool.shared_by(count).config(self.config);
        let pool = match self.customize {
            Some(customize) => customize(pool),
            None => pool,
        };
        pool.build().map(Pool::new).map_err(BuildError::Config)
    }
}

impl fmt::Debug for Builder {
    /// Leaves out the URL, which contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("channels_per_connection", &self.channels_per_connection)
            .field("confirms", &self.confirms)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
