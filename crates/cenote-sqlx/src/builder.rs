//! The builder: a URL or options, credentials, settings, and everything that can be set on a pool.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use cenote::{Config, ConfigError, IdleOrder, Nested, OnOpenError, Pool, WarmUp};
use sqlx::Error;
use tokio::sync::Mutex;

use crate::db::Db;
use crate::dialect::{Dialect, Options};
use crate::manager::Sql;
use crate::template::{AskCredentials, Reset, Template};
use crate::url;
use crate::writer::Writer;

/// Builds a [`Db`]. Building opens nothing.
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<DB: Dialect> {
    source: Source<DB>,
    draft: Draft,
    dress: Option<Box<Dress<DB>>>,
    credentials: Option<Box<AskCredentials>>,
    settings: Vec<String>,
    reset: Reset,
    cancel: bool,
}

enum Source<DB: Dialect> {
    Url(String),
    Options(Options<DB>),
}

type Dress<DB> = dyn FnOnce(cenote::Builder<Sql<DB>>) -> cenote::Builder<Sql<DB>>;

/// What a dialect may still change.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Draft {
    /// The settings of the pool.
    pub config: Config,
    /// Do the options come from a URL, which cannot say everything?
    pub from_url: bool,
    /// Does the URL say that connections share one cache?
    pub shared: bool,
    /// Is there a proxy between, which lends server connections by the transaction?
    pub pooled: bool,
    /// Does the database last only as long as a connection to it?
    pub fleeting: bool,
}

/// One setter per field of [`Config`], and the same by the name that a URL gives.
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
                $(stringify!($field) => config.$field = from.$field.clone(),)*
                _ => unreachable!("bug: the config knows a field that has no setter: {name}"),
            }
        }
    };
}

settings! {
    name: String;
    max_size: usize;
    min_size: usize;
    min_idle: usize;
    acquire_timeout: impl Into<Option<Duration>>;
    open_timeout: impl Into<Option<Duration>>;
    max_opening: usize;
    on_open_error: OnOpenError;
    idle_timeout: impl Into<Option<Duration>>;
    max_lifetime: impl Into<Option<Duration>>;
    lifetime_jitter: f64;
    max_uses: u64;
    check_after_idle: impl Into<Option<Duration>>;
    check_on_return: bool;
    check_timeout: Duration;
    clean_timeout: Duration;
    close_timeout: Duration;
    heartbeat_interval: impl Into<Option<Duration>>;
    upkeep_interval: Duration;
    leak_after: impl Into<Option<Duration>>;
    stuck_after: Duration;
    idle_order: IdleOrder;
    max_waiters: usize;
    nested: Nested;
    warm_up: WarmUp;
    probes: usize;
}

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
            dress: None,
            credentials: None,
            settings: Vec::new(),
            reset: Reset::default(),
            cancel: true,
        }
    }

    /// Takes all settings of the pool from `config`. Those in the URL (`?cenote.max_size=20`) come last and win.
    pub fn config(mut self, config: Config) -> Self {
        self.draft.config = config;
        self
    }

    /// Sets what is not data: observers, hooks, a breaker.
    pub fn pool(
        mut self,
        dress: impl FnOnce(cenote::Builder<Sql<DB>>) -> cenote::Builder<Sql<DB>> + 'static,
    ) -> Self {
        self.dress = Some(Box::new(dress));
        self
    }

    /// Asks `provider` for user and password whenever a connection is opened: for secrets that rotate.
    pub fn credentials<F, Fut, E>(mut self, provider: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.credentials = Some(Box::new(move || {
            let asked = provider();
            Box::pin(async move { asked.await.map_err(Into::into) })
        }));
        self
    }

    /// Runs `sql` on every connection after it was opened, and again after every reset. More than one is run in order.
    pub fn setting(mut self, sql: impl Into<String>) -> Self {
        self.settings.push(sql.into());
        self
    }

    /// What is done about session state before a connection is lent again. Default [`Reset::IfDirty`].
    pub fn reset(mut self, reset: Reset) -> Self {
        self.reset = reset;
        self
    }

    /// May an operation that was dropped midway be cancelled on the server? Default yes. Only PostgreSQL offers it; it costs one question per open.
    /// Behind a proxy that lends server connections to several clients say no: the wrong one would be cancelled.
    pub fn cancel_on_server(mut self, cancel: bool) -> Self {
        self.cancel = cancel;
        self
    }

    /// There is a proxy between that lends server connections by the transaction, like PgBouncer in its transaction mode. Default no.
    ///
    /// Then nothing is cancelled on the server, no statement stays prepared, and one with parameters is put in a transaction of its own, which
    /// costs two more round trips. `prepare` and session state do not work there. A proxy that keeps track of prepared statements itself
    /// (PgBouncer 1.21 with `max_prepared_statements`) needs only [`cancel_on_server(false)`](Builder::cancel_on_server).
    pub fn behind_transaction_pooler(mut self) -> Self {
        self.draft.pooled = true;
        self
    }

    /// Builds the handle. Opens nothing; [`Db::warm`] does. The one place that refuses a wrong value.
    pub fn build(mut self) -> Result<Db<DB>, BuildError> {
        let options = match self.source {
            Source::Options(options) => options,
            Source::Url(url) => {
                let (url, parameters) = url::split(&url);
                let given = url::read(&parameters).map_err(BuildError::Parameter)?;
                for (name, _) in &parameters {
                    set_by_name(&mut self.draft.config, name, &given);
                }
                self.draft.shared = url::says(&url, "cache=shared");
                Options::<DB>::from_str(&url).map_err(BuildError::Url)?
            }
        };
        let options = DB::template(options, &mut self.draft)?;
        if self.credentials.is_some() {
            let nobody = Credentials::new("", "");
            DB::with_credentials(options.clone(), &nobody).ok_or(BuildError::NoCredentials)?;
        }
        let config = self.draft.config.clone();
        let template = Arc::new(Template {
            options,
            credentials: self.credentials,
            settings: self.settings,
            reset: self.reset,
            cancel: self.cancel && !self.draft.pooled,
            pooled: self.draft.pooled,
            canceller: Mutex::new(None),
            anchor: self.draft.fleeting.then(Mutex::default),
        });
        let builder = Pool::builder(Sql { template }).config(config);
        let builder = match self.dress {
            Some(dress) => dress(builder),
            None => builder,
        };
        let pool = builder.build().map_err(BuildError::Config)?;
        let writers = DB::ONE_WRITER.then(|| {
            let writers = Pool::builder(Writer).name(format!("{} (writer)", pool.name()));
            // Each writer brings a deadline: the wait for its connection must end by then, too.
            let writers = writers.max_size(1).acquire_timeout(None);
            writers.build().map_err(BuildError::Config)
        });
        Ok(Db::new(pool, writers.transpose()?))
    }
}

impl<DB: Dialect> fmt::Debug for Builder<DB> {
    /// Without the source, which knows the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("database", &DB::NAME)
            .field("config", &self.draft.config)
            .field("reset", &self.reset)
            .finish_non_exhaustive()
    }
}

/// Who connects. The password is never shown.
#[derive(Clone)]
pub struct Credentials {
    user: String,
    password: String,
}

impl Credentials {
    /// Of this user. An empty password is none.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        let (user, password) = (user.into(), password.into());
        Self { user, password }
    }

    /// Who.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// And by which word, if there is one.
    pub fn password(&self) -> Option<&str> {
        Some(&*self.password).filter(|password| !password.is_empty())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Why a [`Db`] could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// sqlx does not understand the URL.
    Url(Error),
    /// A `cenote.` parameter of the URL is unknown or has a wrong value.
    Parameter(String),
    /// The pool cannot work with a value.
    Config(ConfigError),
    /// A database in memory belongs to one connection, unless it is shared (`sqlite::memory:?cache=shared`).
    InMemory {
        /// How many were asked for.
        max_size: usize,
    },
    /// This database knows no credentials.
    NoCredentials,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => write!(f, "the URL is not understood: {error}"),
            Self::Parameter(text) => write!(f, "in the URL, `cenote.` parameters: {text}"),
            Self::Config(error) => error.fmt(f),
            Self::InMemory { max_size } => write!(
                f,
                "`max_size` is {max_size}, but a database in memory belongs to one connection: set `max_size` to 1, share it (`sqlite::memory:?cache=shared`), or use a file"
            ),
            Self::NoCredentials => f.write_str("this database knows no credentials"),
        }
    }
}

impl StdError for BuildError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            // Its text is part of ours.
            Self::Url(error) => error.source(),
            Self::Config(error) => Some(error),
            Self::Parameter(_) | Self::InMemory { .. } | Self::NoCredentials => None,
        }
    }
}
