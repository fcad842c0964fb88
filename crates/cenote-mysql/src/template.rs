//! The template: how connections are opened, and how they are reset.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};

use crate::credentials::AskCredentials;
use crate::error::Error;
use crate::killer::Killer;

/// Whether session state is undone before a connection is lent again: variables, temporary tables,
/// locks, prepared statements, the default database. An open transaction is always rolled back.
///
/// The protocol can report changes of a session, but the driver does not ask for that. So nothing
/// is known of what a statement has changed, and the default is to reset after every use. A
/// connection that was not used at all is not reset.
///
/// Once a session was reset, MariaDB does not count it for `MAX_USER_CONNECTIONS` of its user any
/// more (seen with 10.11). If that limit has to hold, choose [`Never`](Reset::Never).
///
/// ```
/// use cenote_mysql::{Pool, Reset};
///
/// let pool = Pool::from_url("mysql://app@localhost/shop").reset(Reset::Never).build()?;
/// assert_eq!(pool.status().opened, 0);
/// # Ok::<_, cenote_mysql::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Reset {
    /// Session state is kept, and so are prepared statements. This is for programs that change no
    /// session, or say so by [`reset_connection`](crate::Session::reset_connection).
    Never,
    /// The session is reset after every use.
    #[default]
    Always,
}

pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub(crate) type AfterConnect =
    dyn for<'c> Fn(&'c mut Conn) -> Pending<'c, mysql_async::Result<()>> + Send + Sync;

pub(crate) struct Template {
    pub(crate) options: Opts,
    pub(crate) credentials: Option<Arc<AskCredentials>>,
    /// The settings as one text.
    pub(crate) settings: String,
    pub(crate) after_connect: Option<Box<AfterConnect>>,
    pub(crate) reset: Reset,
    /// Whether a dropped statement may be killed on the server.
    pub(crate) cancel: bool,
    pub(crate) killer: Killer,
}

impl Template {
    pub(crate) async fn connect(&self) -> Result<Conn, Error> {
        let Some(ask) = &self.credentials else {
            return Ok(Conn::new(self.options.clone()).await?);
        };
        let credentials = ask().await.map_err(Error::Credentials)?;
        let options = OptsBuilder::from_opts(self.options.clone())
            .user(Some(credentials.user()))
            .pass(credentials.password());
        Ok(Conn::new(options).await?)
    }

    /// Undoes all changes of a session by the reset of the protocol, which leaves only the default
    /// database as it is.
    pub(crate) async fn reset(&self, conn: &mut Conn) -> Result<(), Error> {
        if !conn.reset().await? {
            return Err(Error::lost("this old server cannot reset a session"));
        }
        let settings = &self.settings;
        match self.options.db_name() {
            Some(database) => {
                let database = database.replace('`', "``");
                let sql = format!("USE `{database}`; {settings}");
                conn.query_drop(sql).await?;
            }
            None => {
                let sql = format!("SELECT DATABASE(); {settings}");
                let database: Option<Option<String>> = conn.query_first(sql).await?;
                if database.flatten().is_some() {
                    return Err(Error::lost("a database was chosen, which cannot be undone"));
                }
            }
        }
        self.customize(conn).await
    }

    /// Runs the settings and the code of the user on a new connection.
    pub(crate) async fn set_up(&self, conn: &mut Conn) -> Result<(), Error> {
        if !self.settings.is_empty() {
            conn.query_drop(self.settings.as_str()).await?;
        }
        self.customize(conn).await
    }

    async fn customize(&self, conn: &mut Conn) -> Result<(), Error> {
        match &self.after_connect {
            Some(code) => Ok(code(conn).await?),
            None => Ok(()),
        }
    }
}
