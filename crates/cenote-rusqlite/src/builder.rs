//! The builder: the place of the database, the settings of its connections and those of the pool.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::build_error::BuildError;
use crate::config::{BUSY_TIMEOUT, Config, STATEMENT_CACHE};
use crate::db::Db;
use crate::manager::Sqlite;
use crate::place::Place;
use crate::template::{Init, Role, Template};

/// Builds a [`Db`]. Building opens no connection.
///
/// There is one setter for each field of [`cenote::Config`]. A setter for something that can be off
/// takes `None`. `max_size`, `min_size` and `min_idle` do not count the writer.
///
/// ```
/// use std::time::Duration;
/// use cenote_rusqlite::Db;
///
/// let db = Db::file("shop.db")
///     .name("shop")
///     .max_size(4)
///     .acquire_timeout(Duration::from_secs(3))
///     .idle_timeout(None)
///     .busy_timeout(Duration::from_secs(10))
///     .statement_cache(100)
///     .setting("PRAGMA cache_size = -8000")
///     .build()?;
/// assert_eq!(db.pool().name(), "shop");
/// assert_eq!(db.pool().status().opened, 0);
/// # Ok::<_, cenote_rusqlite::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    place: Result<Place, BuildError>,
    flags: OpenFlags,
    busy_timeout: Duration,
    statement_cache: usize,
    settings: Vec<String>,
    init: Option<Box<Init>>,
    config: cenote::Config,
    customize: Option<Box<Customize>>,
}

type Customize = dyn FnOnce(cenote::Builder<Sqlite>) -> cenote::Builder<Sqlite>;

/// Writes one setter per field of `cenote::Config`.
macro_rules! setters {
    ($($field:ident: $type:ty;)*) => {
        impl Builder {$(
            #[doc = concat!("Sets [`", stringify!($field), "`](cenote::Config::", stringify!($field), ").")]
            pub fn $field(mut self, $field: $type) -> Self {
                self.config.$field = $field.into();
                self
            }
        )*}
    };
}

cenote::for_each_setting!(setters);

impl Builder {
    pub(crate) fn file(path: PathBuf) -> Self {
        Self::new(Ok(Place::File(path)))
    }

    pub(crate) fn memory() -> Self {
        Self::new(Ok(Place::memory()))
    }

    pub(crate) fn url(url: &str) -> Self {
        Self::new(Place::read(url))
    }

    pub(crate) fn from_config(config: Config) -> Self {
        let mut builder = Self::url(&config.url)
            .busy_timeout(config.busy_timeout)
            .statement_cache(config.statement_cache)
            .config(config.pool);
        builder.settings = config.settings;
        builder
    }

    fn new(place: Result<Place, BuildError>) -> Self {
        Self {
            place,
            flags: OpenFlags::default(),
            busy_timeout: BUSY_TIMEOUT,
            statement_cache: STATEMENT_CACHE,
            settings: Vec::new(),
            init: None,
            config: cenote::Config::default(),
            customize: None,
        }
    }

    /// Sets the pool's name, which is part of every error and event.
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
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::breaker::{BreakerState, ConsecutiveFailures};
    /// use cenote_rusqlite::Db;
    ///
    /// let db = Db::file("/no/such/folder/shop.db")
    ///     .pool(|pool| pool.breaker(ConsecutiveFailures::new(1)))
    ///     .build()?;
    /// assert!(db.acquire().await.is_err());
    /// assert_eq!(db.pool().breaker().state(), BreakerState::Inactive);
    /// # Ok(()) }
    /// ```
    pub fn pool(
        mut self,
        customize: impl FnOnce(cenote::Builder<Sqlite>) -> cenote::Builder<Sqlite> + 'static,
    ) -> Self {
        self.customize = Some(Box::new(customize));
        self
    }

    /// Sets how a file is opened. Default: as rusqlite does, to read and write, and it is created
    /// if it is missing. For a database in memory the default is always right.
    pub fn flags(mut self, flags: OpenFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Sets how long a statement waits for a writer in another process. Default 5 s; zero: not at
    /// all. Writers of this process wait in the pool instead, for `acquire_timeout`.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Sets how many statements `prepare_cached` keeps per connection. Default 16; zero: none.
    pub fn statement_cache(mut self, capacity: usize) -> Self {
        self.statement_cache = capacity;
        self
    }

    /// Runs `sql` on every new connection. Several settings run in the order in which they were
    /// added, after those that cenote makes: the write-ahead log, `foreign_keys` on, `synchronous`
    /// normal.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let db = cenote_rusqlite::Db::memory().setting("PRAGMA cache_size = -8000").build()?;
    /// let get = |conn: &mut rusqlite::Connection| {
    ///     conn.query_row("PRAGMA cache_size", [], |row| row.get::<_, i64>(0))
    /// };
    /// assert_eq!(db.read(get).await?, -8000);
    /// # Ok(()) }
    /// ```
    pub fn setting(mut self, sql: impl Into<String>) -> Self {
        self.settings.push(sql.into());
        self
    }

    /// Sets what is done with each new connection after its settings: functions, collations,
    /// hooks. It runs on the thread of the connection. An error or a panic fails the open.
    ///
    /// An authorizer or a progress handler that it sets replaces that of cenote. Without the
    /// authorizer, a changed session is not noticed. Without both, only the current statement of a
    /// call that is cut off is stopped.
    pub fn init(
        mut self,
        init: impl Fn(&mut Connection) -> rusqlite::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.init = Some(Box::new(init));
        self
    }

    /// Builds the handle, or refuses a wrong value. Opens no connection; [`Db::warm`] does.
    pub fn build(self) -> Result<Db, BuildError> {
        let template = Arc::new(Template {
            place: self.place?,
            flags: self.flags,
            busy_timeout: self.busy_timeout,
            statement_cache: self.statement_cache,
            settings: self.settings,
            init: self.init,
            anchor: Mutex::default(),
        });
        let manager = |role| Sqlite {
            template: Arc::clone(&template),
            role,
        };
        let mut builder = cenote::Pool::builder(manager(Role::Reader)).config(self.config);
        if let Some(customize) = self.customize {
            builder = customize(builder);
        }
        let builder = builder.annex("writer", manager(Role::Writer), 1);
        builder.build().map(Db::new).map_err(BuildError::Config)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("place", &self.place)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
