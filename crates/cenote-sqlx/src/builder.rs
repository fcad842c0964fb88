//! The builder: a URL or sqlx's options, credentials, session settings, and the settings of the
//! pool.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use cenote::{Config, Pool};
use tokio::sync::Mutex;

use crate::build_error::BuildError;
use crate::credentials::Credentials;
use crate::db::Db;
use crate::dialect::{Dialect, Options};
use crate::group::Group;
use crate::hooks::AfterConnect;
use crate::manager::Sql;
use crate::sandbox::Key;
use crate::settings::Settings;
use crate::template::{AskCredentials, Reset, Template};
use crate::url;
use crate::watchdog::{SILENT_AFTER, Watchdog};

/// Builds a [`Db`]. Building opens no connection.
///
/// There is one setter for each field of [`Config`]. A setter for something that can be off takes
/// `None`.
///
/// ```
/// # #[cfg(feature = "postgres")] fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use cenote::config::{IdleOrder, Nested, OnOpenError, WarmUp};
/// use cenote_sqlx::{Db, Reset};
///
/// let db = Db::postgres("postgres://app@localhost/shop")
///     .name("shop")
///     .max_size(20)
///     .min_size(2)
///     .min_idle(1)
///     .acquire_timeout(Duration::from_secs(3))
///     .open_timeout(Duration::from_secs(5))
///     .max_opening(2)
///     .on_open_error(OnOpenError::Retry)
///     .idle_timeout(None)
///     .max_lifetime(Duration::from_secs(600))
///     .lifetime_jitter(0.2)
///     .max_uses(10_000)
///     .check_after_idle(Duration::from_secs(10))
///     .check_on_return(false)
///     .check_timeout(Duration::from_secs(1))
///     .clean_timeout(Duration::from_secs(2))
///     .close_timeout(Duration::from_secs(2))
///     .heartbeat_interval(None)
///     .upkeep_interval(Duration::from_secs(20))
///     .leak_after(Duration::from_secs(60))
///     .stuck_after(Duration::from_secs(10))
///     .idle_order(IdleOrder::Oldest)
///     .max_waiters(None)
///     .nested(Nested::Deny)
///     .warm_up(WarmUp::BestEffort)
///     .probes(2)
///     .self_probe(false)
///     .setting("SET statement_timeout = '5s'")
///     .reset(Reset::Always)
///     .cancel_on_server(false)
///     .retry_reads(false)
///     .silent_after(Duration::from_secs(10))
///     .build()?;
/// let config = db.pool().config();
/// assert_eq!((config.name.as_deref(), config.max_size), (Some("shop"), 20));
/// assert_eq!((config.idle_timeout, config.max_uses), (None, Some(10_000)));
/// assert_eq!(db.pool().status().opened, 0);
/// # Ok(()) }
/// # #[cfg(not(feature = "postgres"))] fn main() {}
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<DB: Dialect> {
    source: Source<DB>,
    draft: Draft,
    customize: Option<Box<Customize<DB>>>,
    pub(crate) credentials: Option<Arc<AskCredentials>>,
    settings: Vec<String>,
    pub(crate) after_connect: Option<Box<AfterConnect<DB>>>,
    pub(crate) check_query: Option<String>,
    reset: Reset,
    cancel: bool,
    sandbox: Option<Key>,
    pub(crate) retry_reads: bool,
    pub(crate) silent_after: Option<Duration>,
}

enum Source<DB: Dialect> {
    Url(String),
    Options(Options<DB>),
}

type Customize<DB> = dyn FnOnce(cenote::Builder<Sql<DB>>) -> cenote::Builder<Sql<DB>>;

/// The part of a builder that a dialect reads and may change.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Draft {
    /// The settings of the pool.
    pub config: Config,
    /// Whether the options come from a URL, which cannot express all of them.
    pub from_url: bool,
    /// Whether the URL says that connections share one cache.
    pub shared: bool,
    /// Whether a proxy lends server connections by the transaction.
    pub pooled: bool,
    /// Whether the database is lost with its last connection.
    pub fleeting: bool,
}

/// Writes one setter per field of [`Config`], and the function that a URL sets them with.
macro_rules! settings {
    ($($field:ident: $type:ty;)*) => {
        impl<DB: Dialect> Builder<DB> {$(
            #[doc = concat!("Sets [`Config::", stringify!($field), "`].")]
            pub fn $field(mut self, $field: $type) -> Self {
                self.draft.config.$field = $field.into();
                self
            }
        )*}

        fn set_by_name(config: &mut Config, name: &str, from: &Config) {
            match name {
                "name" => config.name = from.name.clone(),
                $(stringify!($field) => config.$field = from.$field.clone(),)*
                _ => unreachable!("bug: the config has a field without a setter: {name}"),
            }
        }
    };
}

cenote::for_each_setting!(settings);

impl<DB: Dialect> Builder<DB> {
    pub(crate) fn from_url(url: impl Into<String>) -> Self {
        Self::new(Source::Url(url.into()))
    }

    pub(crate) fn from_options(options: Options<DB>) -> Self {
        Self::new(Source::Options(options))
    }

    fn new(source: Source<DB>) -> Self {
        let from_url = matches!(source, Source::Url(_));
        Self {
            source,
            draft: Draft {
                from_url,
                ..Draft::default()
            },
            customize: None,
            credentials: None,
            settings: Vec::new(),
            after_connect: None,
            check_query: None,
            reset: Reset::default(),
            cancel: true,
            sandbox: None,
            retry_reads: true,
            silent_after: Some(SILENT_AFTER),
        }
    }

    pub(crate) fn sandboxed(mut self, key: Key) -> Self {
        self.sandbox = Some(key);
        self
    }

    /// Sets [`Config::name`].
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.draft.config.name = Some(name.into());
        self
    }

    /// Takes all settings of the pool from `config`. Settings in the URL (`?cenote.max_size=20`)
    /// override them.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")] fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::Config;
    /// use cenote_sqlx::Db;
    ///
    /// let config = Config { max_size: 3, min_idle: 1, ..Config::default() };
    /// let db = Db::sqlite("sqlite://shop.db?cenote.max_size=7").config(config).build()?;
    /// assert_eq!(db.pool().status().max_size, 7);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn config(mut self, config: Config) -> Self {
        self.draft.config = config;
        self
    }

    /// Changes the builder of the pool: adds observers, hooks or a breaker, which are not data.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::breaker::{BreakerState, ConsecutiveFailures};
    /// use cenote_sqlx::Db;
    ///
    /// let db = Db::sqlite("sqlite://not/there.db")
    ///     .pool(|pool| pool.breaker(ConsecutiveFailures::new(1)))
    ///     .build()?;
    /// assert!(db.acquire().await.is_err());
    /// assert_eq!(db.pool().breaker().state(), BreakerState::Inactive);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn pool(
        mut self,
        customize: impl FnOnce(cenote::Builder<Sql<DB>>) -> cenote::Builder<Sql<DB>> + 'static,
    ) -> Self {
        self.customize = Some(Box::new(customize));
        self
    }

    /// Runs `sql` on every connection after it was opened and after every reset. Several settings
    /// run in the order in which they were added.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_sqlx::Db;
    ///
    /// let db = Db::sqlite("sqlite::memory:").max_size(1).setting("PRAGMA cache_size = -8000").build()?;
    /// let size: i64 = sqlx::query_scalar("PRAGMA cache_size").fetch_one(&db).await?;
    /// assert_eq!(size, -8000);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn setting(mut self, sql: impl Into<String>) -> Self {
        self.settings.push(sql.into());
        self
    }

    /// Sets how session state is undone before a connection is lent again. Default
    /// [`Reset::IfDirty`].
    pub fn reset(mut self, reset: Reset) -> Self {
        self.reset = reset;
        self
    }

    /// Sets whether an operation that was dropped before its end is cancelled on the server.
    /// Default true. Only PostgreSQL can cancel; it costs one query per opened connection.
    ///
    /// The request needs a connection of its own, beside `max_size`. All requests at the same time
    /// share it, and it is closed afterwards. So a role with a `CONNECTION LIMIT` needs room for
    /// one more.
    ///
    /// Set it to false behind a proxy that lends server connections to several clients: the request
    /// could cancel the operation of another client.
    pub fn cancel_on_server(mut self, cancel: bool) -> Self {
        self.cancel = cancel;
        self
    }

    /// Prepares the handle for a proxy that lends server connections by the transaction, like
    /// PgBouncer in its transaction mode. Default off.
    ///
    /// Then nothing is cancelled on the server, and no statement stays prepared. A statement with
    /// parameters runs in a transaction of its own, which costs two more round trips. `prepare` and
    /// session state do not work behind such a proxy. A proxy that tracks prepared statements
    /// itself (PgBouncer 1.21 with `max_prepared_statements`) needs only
    /// [`cancel_on_server(false)`](Builder::cancel_on_server).
    ///
    /// The pool cannot join a fleet of `cenote-fleet` that counts the sessions of the server.
    ///
    /// ```
    /// # #[cfg(feature = "postgres")] fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_sqlx::Db;
    ///
    /// let db = Db::postgres("postgres://app@bouncer:6432/shop").behind_transaction_pooler().build()?;
    /// assert_eq!(db.pool().status().opened, 0);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "postgres"))] fn main() {}
    /// ```
    pub fn behind_transaction_pooler(mut self) -> Self {
        self.draft.pooled = true;
        self
    }

    /// Builds the handle, or refuses a wrong value. Opens no connection; [`Db::warm`] does.
    pub fn build(mut self) -> Result<Db<DB>, BuildError> {
        let options = match self.source {
            Source::Options(options) => options,
            Source::Url(url) => {
                url::check_scheme::<DB>(&url)?;
                let (url, parameters) = url::split(&url);
                let given = url::read(&parameters).map_err(BuildError::Parameter)?;
                for (name, _) in &parameters {
                    set_by_name(&mut self.draft.config, name, &given);
                }
                url::check_parameters(&url, DB::PARAMETERS)?;
                self.draft.shared = url::has_parameter(&url, "cache=shared");
                Options::<DB>::from_str(&url).map_err(BuildError::Url)?
            }
        };
        let options = DB::template(options, &mut self.draft)?;
        if self.credentials.is_some() {
            let none = Credentials::new("", "");
            DB::with_credentials(options.clone(), &none).ok_or(BuildError::NoCredentials)?;
        }
        let config = self.draft.config.clone();
        // The only connection of a pool is the writer, too.
        let one_writer = DB::ONE_WRITER && self.sandbox.is_none() && config.max_size > 1;
        let cancel = self.cancel && !self.draft.pooled;
        let silent_after = self
            .silent_after
            .filter(|_| cancel && self.sandbox.is_none());
        let watchdog = silent_after
            .map(|after| Arc::new(Watchdog::new(after, &config, &options, &self.credentials)));
        let template = Arc::new(Template {
            options,
            credentials: self.credentials,
            settings: Settings::new(self.settings),
            after_connect: self.after_connect,
            check_query: self.check_query,
            reset: self.reset,
            cancel,
            retry_reads: self.retry_reads,
            pooled: self.draft.pooled,
            canceller: Mutex::new(None),
            anchor: self.draft.fleeting.then(Mutex::default),
            group: Group::default(),
            sandbox: self.sandbox,
            watchdog,
        });
        let sql = Sql { template };
        let mut builder = Pool::builder(sql.clone()).config(config);
        if let Some(customize) = self.customize {
            builder = customize(builder);
        }
        if one_writer {
            builder = builder.annex("writer", sql, 1);
        }
        builder.build().map(Db::new).map_err(BuildError::Config)
    }
}

impl<DB: Dialect> fmt::Debug for Builder<DB> {
    /// Leaves out the source, which contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("database", &DB::NAME)
            .field("config", &self.draft.config)
            .field("reset", &self.reset)
            .finish_non_exhaustive()
    }
}
