//! The builder: a URL, credentials, lanes, and the settings of the pool.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};

use crate::build_error::BuildError;
use crate::config::Config;
use crate::credentials::AskCredentials;
use crate::dial::Address;
use crate::lanes::Lanes;
use crate::manager::{Redis, Template};
use crate::pool::Pool;
#[cfg(feature = "rustls")]
use crate::tls::Trust;
use crate::url;

/// Builds a [`Pool`]. Building opens no connection.
///
/// There is one setter for each field of [`cenote::Config`] and of [`Config`]. A setter for
/// something that can be off takes `None`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use cenote_redis::Pool;
///
/// let redis = Pool::from_url("redis://localhost/2")
///     .name("sessions")
///     .max_size(20)
///     .acquire_timeout(Duration::from_secs(1))
///     .idle_timeout(None)
///     .mux(2)
///     .lane_depth(1000)
///     .response_timeout(Duration::from_millis(500))
///     .build()?;
/// assert_eq!(redis.pool().config().max_size, 20);
/// assert_eq!(redis.pool().status().opened, 0);
/// # Ok(()) }
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    config: Config,
    /// Takes the place of the URL.
    info: Option<ConnectionInfo>,
    customize: Option<Box<Customize>>,
    pub(crate) credentials: Option<Arc<AskCredentials>>,
    #[cfg(feature = "rustls")]
    trust: Trust,
}

type Customize = dyn FnOnce(cenote::Builder<Redis>) -> cenote::Builder<Redis>;

/// Writes one setter per field of the config of the pool.
macro_rules! settings {
    ($($field:ident: $type:ty;)*) => {
        impl Builder {$(
            #[doc = concat!("Sets [`cenote::Config::", stringify!($field), "`].")]
            pub fn $field(mut self, $field: $type) -> Self {
                self.config.pool.$field = $field.into();
                self
            }
        )*}
    };
}

cenote::for_each_setting!(settings);

impl Builder {
    pub(crate) fn new(config: Config, info: Option<ConnectionInfo>) -> Self {
        Self {
            config,
            info,
            customize: None,
            credentials: None,
            #[cfg(feature = "rustls")]
            trust: Trust::default(),
        }
    }

    /// Sets [`cenote::Config::name`].
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.pool.name = Some(name.into());
        self
    }

    /// Takes all settings of the pool from `config`.
    pub fn config(mut self, config: cenote::Config) -> Self {
        self.config.pool = config;
        self
    }

    /// Sets [`Config::mux`]: how many lanes there are.
    pub fn mux(mut self, lanes: usize) -> Self {
        self.config.mux = lanes;
        self
    }

    /// Sets [`Config::lane_depth`]: how many commands may be in flight per lane.
    pub fn lane_depth(mut self, commands: usize) -> Self {
        self.config.lane_depth = commands;
        self
    }

    /// Sets [`Config::response_timeout`].
    pub fn response_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.config.response_timeout = limit.into();
        self
    }

    /// Trusts the servers with a certificate of these roots, in PEM, in place of those that the
    /// operating system trusts. For `rediss://`.
    #[cfg(feature = "rustls")]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.trust = Trust::Roots(pem.into());
        self
    }

    /// Uses this configuration of rustls, for client certificates and everything else. For
    /// `rediss://`.
    #[cfg(feature = "rustls")]
    pub fn tls_config(mut self, config: impl Into<Arc<crate::rustls::ClientConfig>>) -> Self {
        self.trust = Trust::Config(config.into());
        self
    }

    /// Changes the builder of the pool: adds observers, hooks or a breaker, which are not data.
    /// They see the lanes, too.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::breaker::{BreakerState, ConsecutiveFailures};
    /// use cenote_redis::Pool;
    ///
    /// let redis = Pool::from_url("redis://127.0.0.1:1")
    ///     .pool(|pool| pool.breaker(ConsecutiveFailures::new(1)))
    ///     .build()?;
    /// assert!(redis.acquire().await.is_err());
    /// assert_eq!(redis.pool().breaker().state(), BreakerState::Inactive);
    /// # Ok(()) }
    /// ```
    pub fn pool(
        mut self,
        customize: impl FnOnce(cenote::Builder<Redis>) -> cenote::Builder<Redis> + 'static,
    ) -> Self {
        self.customize = Some(Box::new(customize));
        self
    }

    /// Builds the handle, or refuses a wrong value. Opens no connection; [`Pool::warm`] does.
    pub fn build(self) -> Result<Pool, BuildError> {
        let Config {
            mux,
            lane_depth,
            response_timeout,
            ..
        } = self.config;
        if lane_depth == 0 {
            return Err(BuildError::LaneDepth);
        }
        let (info, tls) = match self.info {
            Some(info) => (info, false),
            None => {
                let (url, tls) = url::read(&self.config.url)?;
                (url.into_connection_info().map_err(BuildError::Url)?, tls)
            }
        };
        let address = Address::read(
            &info,
            tls,
            #[cfg(feature = "rustls")]
            &self.trust,
        )?;
        let redis = Redis(Arc::new(Template {
            address,
            tcp: info.tcp_settings().clone(),
            login: named(info.redis_settings()),
            credentials: self.credentials,
            response_timeout,
        }));
        let mut builder = cenote::Pool::builder(redis.clone()).config(self.config.pool);
        if let Some(customize) = self.customize {
            builder = customize(builder);
        }
        if mux > 0 {
            // A lane that is retired has its slot until its last command is answered. Its
            // successor need not wait for that.
            builder = builder.annex("lanes", redis, 2 * mux);
        }
        let pool = builder.build().map_err(BuildError::Config)?;
        let lanes = pool.annex().map(|annex| {
            let lanes = Lanes::new(annex.clone(), mux, lane_depth, response_timeout);
            Arc::new(lanes)
        });
        Ok(Pool::new(pool, lanes))
    }
}

/// Returns the login with the name of this crate, unless another one was given.
fn named(login: &RedisConnectionInfo) -> RedisConnectionInfo {
    let login = login.clone();
    if login.skip_set_lib_name() || login.lib_name().is_some() {
        return login;
    }
    login.set_lib_name(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
