//! The builder: a URL or the driver's options, TLS, session settings, and the settings of the pool.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_postgres::error::DbError;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config as Options, NoTls, Socket};

use crate::cancel::Canceller;
use crate::connect::{Connect, OnNotice, With};
use crate::credentials::AskCredentials;
use crate::error::BuildError;
use crate::manager::Postgres;
use crate::pool::Pool;
use crate::template::{AfterConnect, Reset, Template};

/// As many statements as a service usually has, times two.
pub(crate) const CACHE_CAPACITY: usize = 256;

/// Builds a [`Pool`]. Building opens no connection.
///
/// There is one setter for each field of [`cenote::Config`]. A setter for something that can be off
/// takes `None`.
///
/// ```
/// use std::time::Duration;
/// use cenote_postgres::{Pool, Reset};
///
/// let pool = Pool::from_url("postgres://app@localhost/shop?sslmode=disable")
///     .name("shop")
///     .max_size(20)
///     .min_idle(2)
///     .acquire_timeout(Duration::from_secs(3))
///     .idle_timeout(None)
///     .setting("set statement_timeout = '5s'")
///     .reset(Reset::Always)
///     .statement_cache_capacity(100)
///     .cancel_on_server(false)
///     .on_notice(|notice| println!("{notice}"))
///     .build()?;
/// assert_eq!((pool.name(), pool.status().opened), ("shop", 0));
/// # Ok::<_, cenote_postgres::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    source: Source,
    connector: Arc<dyn Connect>,
    config: cenote::Config,
    customize: Option<Box<Customize>>,
    pub(crate) credentials: Option<Arc<AskCredentials>>,
    settings: Vec<String>,
    after_connect: Option<Box<AfterConnect>>,
    on_notice: Option<Arc<OnNotice>>,
    reset: Reset,
    cancel: bool,
    cache_capacity: usize,
}

enum Source {
    Url(String),
    Options(Box<Options>),
}

type Customize = dyn FnOnce(cenote::Builder<Postgres>) -> cenote::Builder<Postgres>;

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
    pub(crate) fn from_url(url: String) -> Self {
        Self::new(Source::Url(url))
    }

    pub(crate) fn with_options(options: Options) -> Self {
        Self::new(Source::Options(Box::new(options)))
    }

    fn new(source: Source) -> Self {
        Self {
            source,
            connector: Arc::new(With(NoTls)),
            config: cenote::Config::default(),
            customize: None,
            credentials: None,
            settings: Vec::new(),
            after_connect: None,
            on_notice: None,
            reset: Reset::default(),
            cancel: true,
            cache_capacity: CACHE_CAPACITY,
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

    /// Changes the builder of the pool: adds observers, hooks or a breaker, which are not data.
    ///
    /// ```
    /// use cenote::breaker::{BreakerState, ConsecutiveFailures};
    /// use cenote_postgres::Pool;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::from_url("postgres://app@127.0.0.1:1/shop")
    ///     .pool(|pool| pool.breaker(ConsecutiveFailures::new(1)))
    ///     .build()?;
    /// assert!(pool.acquire().await.is_err());
    /// assert_eq!(pool.breaker().state(), BreakerState::Inactive);
    /// # Ok(()) }
    /// ```
    pub fn pool(
        mut self,
        customize: impl FnOnce(cenote::Builder<Postgres>) -> cenote::Builder<Postgres> + 'static,
    ) -> Self {
        self.customize = Some(Box::new(customize));
        self
    }

    /// Sets the TLS connector, for example of `postgres-native-tls`. Without one, `sslmode=require`
    /// fails, and the default `sslmode=prefer` means no TLS. With the feature `rustls` there is a
    /// method of that name.
    pub fn tls<T>(mut self, connector: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        self.connector = Arc::new(With(connector));
        self
    }

    /// Runs `sql` on every connection after it was opened and after every reset. Several settings
    /// run in the order in which they were added.
    pub fn setting(mut self, sql: impl Into<String>) -> Self {
        self.settings.push(sql.into());
        self
    }

    /// Runs code on every connection after it was opened and after every reset, behind the
    /// [settings](Builder::setting). An error closes the connection. What the code changes counts
    /// as the normal state of the session.
    ///
    /// ```
    /// use cenote_postgres::Pool;
    ///
    /// let pool = Pool::from_url("postgres://app@localhost/shop").after_connect(|client| {
    ///     Box::pin(async move { client.batch_execute("set role reader").await })
    /// });
    /// assert!(pool.build().is_ok());
    /// ```
    ///
    /// # Cancel safety
    /// The pool drops the future, and closes the connection, when the open takes longer than
    /// `open_timeout` or the cleaning longer than `clean_timeout`.
    pub fn after_connect(
        mut self,
        code: impl for<'c> Fn(&'c Client) -> BoxFuture<'c, Result<(), tokio_postgres::Error>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.after_connect = Some(Box::new(code));
        self
    }

    /// Hears the notices of the server, like warnings and the output of `RAISE NOTICE`. It runs in
    /// the task of the connection, so it must be quick.
    pub fn on_notice(mut self, code: impl Fn(&DbError) + Send + Sync + 'static) -> Self {
        self.on_notice = Some(Arc::new(code));
        self
    }

    /// Sets how session state is undone before a connection is lent again. Default
    /// [`Reset::IfDirty`].
    pub fn reset(mut self, reset: Reset) -> Self {
        self.reset = reset;
        self
    }

    /// Sets whether a statement whose future was dropped is cancelled on the server. Default true,
    /// which costs one query per opened connection.
    ///
    /// The request needs a connection of its own, beside `max_size`. All requests at the same time
    /// share it, and it is closed afterwards.
    ///
    /// Set it to false behind a proxy that lends server connections to several clients: the request
    /// could cancel the statement of another client. A connection whose statement does not end at
    /// once is then closed.
    pub fn cancel_on_server(mut self, cancel: bool) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sets how many prepared statements each connection keeps. Default 256; zero keeps none.
    pub fn statement_cache_capacity(mut self, capacity: usize) -> Self {
        self.cache_capacity = capacity;
        self
    }

    /// Builds the pool, or refuses a wrong value. Opens no connection; `warm` does.
    pub fn build(self) -> Result<Pool, BuildError> {
        let options = match self.source {
            Source::Options(options) => *options,
            Source::Url(url) => Options::from_str(&url).map_err(BuildError::Url)?,
        };
        let template = Template {
            options,
            connector: self.connector,
            credentials: self.credentials,
            settings: self.settings,
            after_connect: self.after_connect,
            on_notice: self.on_notice,
            reset: self.reset,
            cancel: self.cancel,
            canceller: Canceller::default(),
            cache_capacity: self.cache_capacity,
        };
        let template = Arc::new(template);
        let mut builder = cenote::Pool::builder(Postgres { template }).config(self.config);
        if let Some(customize) = self.customize {
            builder = customize(builder);
        }
        builder.build().map(Pool::new).map_err(BuildError::Config)
    }
}

impl fmt::Debug for Builder {
    /// Leaves out the source, which contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .field("reset", &self.reset)
            .finish_non_exhaustive()
    }
}
