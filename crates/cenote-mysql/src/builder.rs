//! The builder: a URL or the driver's options, session settings, and the settings of the pool.

use std::fmt;
use std::sync::Arc;

use mysql_async::{Conn, Opts};
#[cfg(feature = "rustls")]
use mysql_async::{OptsBuilder, SslOpts};

use crate::build_error::BuildError;
use crate::credentials::AskCredentials;
use crate::killer::Killer;
use crate::manager::Mysql;
use crate::pool::Pool;
use crate::template::{AfterConnect, Pending, Reset, Template};
use crate::url;

/// Builds a [`Pool`]. Building opens no connection.
///
/// There is one setter for each field of [`cenote::Config`]. A setter for something that can be off
/// takes `None`.
///
/// ```
/// use std::time::Duration;
/// use cenote_mysql::{Pool, Reset};
///
/// let pool = Pool::from_url("mysql://app@localhost/shop?stmt_cache_size=100")
///     .name("shop")
///     .max_size(20)
///     .min_idle(2)
///     .acquire_timeout(Duration::from_secs(3))
///     .idle_timeout(None)
///     .setting("SET time_zone = '+00:00'")
///     .reset(Reset::Never)
///     .cancel_on_server(false)
///     .build()?;
/// assert_eq!((pool.name(), pool.status().opened), ("shop", 0));
/// # Ok::<_, cenote_mysql::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    source: Source,
    #[cfg(feature = "rustls")]
    tls: Option<SslOpts>,
    config: cenote::Config,
    customize: Option<Box<Customize>>,
    pub(crate) credentials: Option<Arc<AskCredentials>>,
    settings: Vec<String>,
    after_connect: Option<Box<AfterConnect>>,
    reset: Reset,
    cancel: bool,
}

enum Source {
    Url(String),
    Options(Opts),
}

type Customize = dyn FnOnce(cenote::Builder<Mysql>) -> cenote::Builder<Mysql>;

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

    pub(crate) fn with_options(options: Opts) -> Self {
        Self::new(Source::Options(options))
    }

    fn new(source: Source) -> Self {
        Self {
            source,
            #[cfg(feature = "rustls")]
            tls: None,
            config: cenote::Config::default(),
            customize: None,
            credentials: None,
            settings: Vec::new(),
            after_connect: None,
            reset: Reset::default(),
            cancel: true,
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
    /// use cenote_mysql::Pool;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::from_url("mysql://app@127.0.0.1:1/shop")
    ///     .pool(|pool| pool.breaker(ConsecutiveFailures::new(1)))
    ///     .build()?;
    /// assert!(pool.acquire().await.is_err());
    /// assert_eq!(pool.breaker().state(), BreakerState::Inactive);
    /// # Ok(()) }
    /// ```
    pub fn pool(
        mut self,
        customize: impl FnOnce(cenote::Builder<Mysql>) -> cenote::Builder<Mysql> + 'static,
    ) -> Self {
        self.customize = Some(Box::new(customize));
        self
    }

    /// Sets the options of TLS, for certificates that a URL cannot name. They replace those of the
    /// URL, and TLS is then used on every connection, or its open fails.
    ///
    /// ```
    /// use std::path::PathBuf;
    /// use cenote_mysql::Pool;
    /// use cenote_mysql::mysql_async::SslOpts;
    ///
    /// let root = PathBuf::from("/etc/ssl/database.pem");
    /// let tls = SslOpts::default().with_root_certs(vec![root.into()]);
    /// let pool = Pool::from_url("mysql://app@localhost/shop").tls(tls).build()?;
    /// # drop(pool);
    /// # Ok::<_, cenote_mysql::BuildError>(())
    /// ```
    #[cfg(feature = "rustls")]
    pub fn tls(mut self, tls: SslOpts) -> Self {
        self.tls = Some(tls);
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
    /// use cenote_mysql::Pool;
    /// use cenote_mysql::mysql_async::prelude::Queryable;
    ///
    /// let pool = Pool::from_url("mysql://app@localhost/shop")
    ///     .after_connect(|conn| Box::pin(async move { conn.query_drop("SET ROLE reader").await }));
    /// assert!(pool.build().is_ok());
    /// ```
    ///
    /// # Cancel safety
    /// The pool drops the future, and closes the connection, when the open takes longer than
    /// `open_timeout` or the cleaning longer than `clean_timeout`.
    pub fn after_connect(
        mut self,
        code: impl for<'c> Fn(&'c mut Conn) -> Pending<'c, mysql_async::Result<()>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.after_connect = Some(Box::new(code));
        self
    }

    /// Sets whether session state is undone before a connection is lent again. Default
    /// [`Reset::Always`].
    pub fn reset(mut self, reset: Reset) -> Self {
        self.reset = reset;
        self
    }

    /// Sets whether a statement whose future was dropped is killed on the server. Default true,
    /// which costs one query per opened connection.
    ///
    /// The `KILL` needs a connection of its own, beside `max_size`. All requests at the same time
    /// share it, and it is closed afterwards.
    ///
    /// Set it to false behind a proxy that lends server connections to several clients. The server
    /// then goes on with the statement until it wants to answer.
    pub fn cancel_on_server(mut self, cancel: bool) -> Self {
        self.cancel = cancel;
        self
    }

    /// Builds the pool, or refuses a wrong value. Opens no connection; `warm` does.
    pub fn build(self) -> Result<Pool, BuildError> {
        let options = match self.source {
            Source::Options(options) => options,
            Source::Url(url) => url::parse(&url)?,
        };
        #[cfg(feature = "rustls")]
        let options = match self.tls {
            Some(tls) => OptsBuilder::from_opts(options).ssl_opts(tls).into(),
            None => options,
        };
        url::examine(&options)?;
        let template = Template {
            options,
            credentials: self.credentials,
            settings: self.settings.join("; "),
            after_connect: self.after_connect,
            reset: self.reset,
            cancel: self.cancel,
            killer: Killer::default(),
        };
        let template = Arc::new(template);
        let mut builder = cenote::Pool::builder(Mysql { template }).config(self.config);
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
