//! The template: how connections are opened, and how they are reset.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use futures_core::future::BoxFuture;
use sqlx::{Connection, Error};
use tokio::sync::Mutex;

use crate::credentials::Credentials;
use crate::dialect::{Dialect, Options, Statements};
use crate::group::Group;
use crate::hooks::AfterConnect;
use crate::sandbox::Key;
use crate::settings::Settings;
use crate::watchdog::{Watch, Watchdog};

/// How session state is undone before a connection is lent again. An open transaction is always
/// rolled back.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::{Db, Reset};
///
/// for (reset, left) in [(Reset::IfDirty, 0), (Reset::Never, 1)] {
///     let db = Db::sqlite("sqlite::memory:").max_size(1).reset(reset).build()?;
///     let set = async || sqlx::query("PRAGMA recursive_triggers = 1").execute(&db).await;
///     cenote::scope(set()).await?;
///     let set: i64 = sqlx::query_scalar("PRAGMA recursive_triggers").fetch_one(&db).await?;
///     assert_eq!(set, left);
/// }
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reset {
    /// Session state is kept.
    Never,
    /// The session is reset if the text of a statement suggests that it changed the session.
    /// Changes by a function on the server are not noticed.
    #[default]
    IfDirty,
    /// The session is reset after every use. A database without a reset closes the connection.
    Always,
    /// This statement runs after every use, and the settings of the builder run after it. It may be
    /// `DISCARD ALL`: the driver then prepares its statements again.
    Query(String),
}

type Asked = BoxFuture<'static, Result<Credentials, Box<dyn StdError + Send + Sync>>>;

pub(crate) type AskCredentials = dyn Fn() -> Asked + Send + Sync;

/// How connections of one [`Db`](crate::Db) are opened.
#[doc(hidden)]
pub struct Template<DB: Dialect> {
    pub(crate) options: Options<DB>,
    pub(crate) credentials: Option<Arc<AskCredentials>>,
    pub(crate) settings: Settings,
    pub(crate) after_connect: Option<Box<AfterConnect<DB>>>,
    pub(crate) check_query: Option<String>,
    pub(crate) reset: Reset,
    /// Whether a dropped operation may be cancelled on the server.
    pub cancel: bool,
    /// Whether a read is tried again after its connection turned out to be dead.
    pub(crate) retry_reads: bool,
    /// Whether a proxy lends server connections by the transaction.
    pub(crate) pooled: bool,
    /// The connection that sends cancel requests. It is opened on demand and shared by requests at
    /// the same time.
    pub canceller: Mutex<Option<DB::Connection>>,
    /// For a database that is lost with its last connection: a connection that is never closed.
    pub(crate) anchor: Option<Mutex<Option<DB::Connection>>>,
    /// Writes that wait for the only writer.
    pub(crate) group: Group<DB>,
    /// For a sandbox: where its connection comes from and goes.
    pub(crate) sandbox: Option<Key>,
    /// Looks after statements that wait for a server, if that is wanted and possible.
    pub(crate) watchdog: Option<Arc<Watchdog<DB>>>,
}

/// Opens a connection.
pub(crate) async fn connect<DB: Dialect>(
    options: &Options<DB>,
    credentials: Option<&AskCredentials>,
) -> Result<DB::Connection, Error> {
    let options = fresh_options::<DB>(options, credentials).await?;
    let connected = DB::Connection::connect_with(&options).await;
    connected.map_err(DB::explain)
}

async fn fresh_options<DB: Dialect>(
    options: &Options<DB>,
    credentials: Option<&AskCredentials>,
) -> Result<Options<DB>, Error> {
    let Some(ask) = credentials else {
        return Ok(options.clone());
    };
    let credentials = ask().await.map_err(Error::Configuration)?;
    let options = DB::with_credentials(options.clone(), &credentials);
    Ok(options.expect("the builder refuses credentials for a database without users"))
}

impl<DB: Dialect> Template<DB> {
    /// Opens a connection.
    pub(crate) async fn connect(&self) -> Result<DB::Connection, Error> {
        connect::<DB>(&self.options, self.credentials.as_deref()).await
    }

    /// Returns the watch of a new session, if there is a watchdog.
    pub(crate) async fn watch(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Option<Arc<Watch<DB>>>, Error> {
        match &self.watchdog {
            Some(watchdog) => watchdog.watch(connection).await,
            None => Ok(None),
        }
    }

    /// Returns the options, with the present credentials.
    pub(crate) async fn fresh_options(&self) -> Result<Options<DB>, Error> {
        fresh_options::<DB>(&self.options, self.credentials.as_deref()).await
    }

    /// Opens the anchor, if the database needs one and has none yet.
    pub(crate) async fn drop_anchor(&self) -> Result<(), Error> {
        let Some(anchor) = &self.anchor else {
            return Ok(());
        };
        let mut anchor = anchor.lock().await;
        if anchor.is_none() {
            *anchor = Some(self.connect().await?);
        }
        Ok(())
    }

    /// Runs the settings and the code of the user.
    pub(crate) async fn apply_settings(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<(), Error> {
        for setting in &*self.settings.texts() {
            <DB as Statements>::run(connection, setting).await?;
        }
        match &self.after_connect {
            Some(code) => code(connection).await,
            None => Ok(()),
        }
    }
}

impl<DB: Dialect> fmt::Debug for Template<DB> {
    /// Leaves out the options, which contain the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template")
            .field("database", &DB::NAME)
            .field("reset", &self.reset)
            .field("settings", &self.settings.texts().len())
            .finish_non_exhaustive()
    }
}
