//! A pool of cenote as a pool of Rocket.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::time::Duration;

use cenote::{AcquireError, Lease, Manager};
use rocket::figment::Figment;
use rocket_db_pools::Error;

use crate::settings::{Settings, in_rockets_words};

/// How long a shutdown waits for leases. Rocket's default `grace` and `mercy` are as long together.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// A pool of cenote that Rocket makes from its configuration, lends from and closes. It derefs to
/// the pool inside: `Pool<cenote_sqlx::Db<DB>>`, `Pool<cenote_postgres::Pool>`, or
/// `Pool<cenote::Pool<M>>` for any [manager](RocketManager).
///
/// At launch it opens at least one resource, or fails. With the setting `pool.warm_up =
/// "best_effort"` a backend that is down does not stop the launch.
///
/// At shutdown the pool lends nothing more, and Rocket waits up to five seconds for what is lent.
pub struct Pool<P>(P);

impl<P> Deref for Pool<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.0
    }
}

impl<P: fmt::Debug> fmt::Debug for Pool<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.0).finish()
    }
}

/// A pool that can be made from the configuration of Rocket.
///
/// The pools of the driver crates have it, and so has `cenote::Pool<M>` if `M` is a
/// [`RocketManager`]. A program implements it for a pool of its own that needs a builder, for
/// example for TLS:
///
/// ```
/// # #[cfg(feature = "sqlx")] mod example {
/// use cenote_rocket::{BuildError, RocketPool, Settings};
/// use cenote_sqlx::{Db, Lease, Sql};
/// use sqlx::Sqlite;
///
/// struct Orders(Db<Sqlite>);
///
/// impl RocketPool for Orders {
///     type Manager = Sql<Sqlite>;
///     type Connection = Lease<Sqlite>;
///     type Error = sqlx::Error;
///
///     fn build(settings: &Settings) -> Result<Self, BuildError> {
///         let url: String = settings.value("url")?;
///         let db = Db::sqlite(url).config(settings.pool()?).retry_reads(false);
///         Ok(Self(db.build()?))
///     }
///
///     fn pool(&self) -> &cenote::Pool<Sql<Sqlite>> {
///         self.0.pool()
///     }
///
///     async fn acquire(&self) -> Result<Lease<Sqlite>, sqlx::Error> {
///         self.0.acquire().await
///     }
/// }
///
/// #[derive(rocket_db_pools::Database)]
/// #[database("orders")]
/// struct OrdersDb(cenote_rocket::Pool<Orders>);
/// # }
/// ```
pub trait RocketPool: Sized + Send + Sync + 'static {
    /// The manager of the pool.
    type Manager: Manager + 'static;
    /// What the request guard `Connection` derefs to.
    type Connection: Send;
    /// Why there is no connection.
    type Error: StdError;

    /// Builds the pool from the settings below `databases.NAME`. Opens nothing.
    fn build(settings: &Settings) -> Result<Self, BuildError>;

    /// Returns the pool.
    fn pool(&self) -> &cenote::Pool<Self::Manager>;

    /// Acquires the connection of a request guard.
    ///
    /// # Cancel safety
    /// Dropping this future must give up its place in the queue.
    fn acquire(&self) -> impl Future<Output = Result<Self::Connection, Self::Error>> + Send;
}

/// A manager that can be made from the configuration of Rocket, so that `cenote::Pool<Self>` is a
/// [`RocketPool`].
///
/// ```
/// use cenote_rocket::{BuildError, RocketManager, Settings};
/// use rocket_db_pools::{Connection, Database};
///
/// struct Sessions {
///     greeting: String,
/// }
///
/// impl cenote::Manager for Sessions {
///     type Resource = String;
///     type Error = std::io::Error;
///     async fn open(&self) -> std::io::Result<String> {
///         Ok(self.greeting.clone())
///     }
/// }
///
/// impl RocketManager for Sessions {
///     fn from_settings(settings: &Settings) -> Result<Self, BuildError> {
///         Ok(Self { greeting: settings.value("greeting")? })
///     }
/// }
///
/// #[derive(Database)]
/// #[database("sessions")]
/// struct SessionsDb(cenote_rocket::Pool<cenote::Pool<Sessions>>);
///
/// #[rocket::get("/")]
/// fn hello(session: Connection<SessionsDb>) -> String {
///     session.to_string()
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = rocket::Config::figment().merge(("databases.sessions.greeting", "hello"));
/// let rocket = rocket::custom(config).mount("/", rocket::routes![hello]).attach(SessionsDb::init());
/// let client = rocket::local::asynchronous::Client::tracked(rocket).await?;
/// assert_eq!(client.get("/").dispatch().await.into_string().await.as_deref(), Some("hello"));
/// # Ok(()) }
/// ```
pub trait RocketManager: Manager<Error: fmt::Debug> + Sized + 'static {
    /// Makes the manager from the settings below `databases.NAME`.
    fn from_settings(settings: &Settings) -> Result<Self, BuildError>;
}

impl<M: RocketManager> RocketPool for cenote::Pool<M> {
    type Manager = M;
    type Connection = Lease<M>;
    type Error = AcquireError<M::Error>;

    fn build(settings: &Settings) -> Result<Self, BuildError> {
        let manager = M::from_settings(settings)?;
        Ok(Self::builder(manager).config(settings.pool()?).build()?)
    }

    fn pool(&self) -> &cenote::Pool<M> {
        self
    }

    fn acquire(&self) -> impl Future<Output = Result<Lease<M>, AcquireError<M::Error>>> + Send {
        self.acquire()
    }
}

#[rocket::async_trait]
impl<P: RocketPool> rocket_db_pools::Pool for Pool<P> {
    type Connection = P::Connection;
    type Error = Error<BuildError, P::Error>;

    async fn init(figment: &Figment) -> Result<Self, Self::Error> {
        let pool = P::build(&Settings::new(figment));
        let pool = pool.map_err(|error| in_rockets_words(&error.to_string()));
        let pool = pool.map_err(|text| Error::Init(text.into()))?;
        let warm = pool.pool().warm().await;
        // As text, because the error of a manager need not be an `Error`.
        warm.map_err(|error| Error::Init(error.to_string().into()))?;
        Ok(Self(pool))
    }

    async fn get(&self) -> Result<P::Connection, Self::Error> {
        self.0.acquire().await.map_err(Error::Get)
    }

    async fn close(&self) {
        self.0.pool().close_within(CLOSE_LIMIT).await;
    }
}

/// Why a pool could not be made: `?` turns any error into it. Its text names the setting.
pub struct BuildError(Box<dyn StdError + Send + Sync>);

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for BuildError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
