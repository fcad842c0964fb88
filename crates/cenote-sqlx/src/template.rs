//! The template: all that is needed to open a connection and to make it as good as new.

use std::error::Error as StdError;
use std::fmt;

use futures_core::future::BoxFuture;
use sqlx::{Connection, Error};
use tokio::sync::Mutex;

use crate::builder::Credentials;
use crate::dialect::{Dialect, Options, Statements};

/// What is done about session state before a connection is lent again. An open transaction is always rolled back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reset {
    /// Nothing.
    Never,
    /// A reset, if the text of what was run says that there may be something to reset. What a function does on the server is not seen.
    #[default]
    IfDirty,
    /// A reset after every use. Databases without one close the connection.
    Always,
    /// This statement, after every use.
    Query(String),
}

pub(crate) type AskCredentials = dyn Fn() -> BoxFuture<'static, Result<Credentials, Box<dyn StdError + Send + Sync>>>
    + Send
    + Sync;

/// How connections of one [`Db`](crate::Db) are opened.
#[doc(hidden)]
pub struct Template<DB: Dialect> {
    pub(crate) options: Options<DB>,
    pub(crate) credentials: Option<Box<AskCredentials>>,
    pub(crate) settings: Vec<String>,
    pub(crate) reset: Reset,
    /// May what was abandoned be cancelled on the server?
    pub cancel: bool,
    /// Is there a proxy between, which lends server connections by the transaction?
    pub(crate) pooled: bool,
    /// A connection to cancel by: opened when it is needed, shared by those who need it at the same time.
    pub canceller: Mutex<Option<DB::Connection>>,
    /// Where a database is gone with its last connection: one that stays.
    pub(crate) anchor: Option<Mutex<Option<DB::Connection>>>,
}

impl<DB: Dialect> Template<DB> {
    /// A connection as the driver makes it.
    pub(crate) async fn connect(&self) -> Result<DB::Connection, Error> {
        let Some(ask) = &self.credentials else {
            return DB::Connection::connect_with(&self.options).await;
        };
        let credentials = ask().await.map_err(Error::Configuration)?;
        let options = DB::with_credentials(self.options.clone(), &credentials)
            .expect("the builder refuses credentials where there are none");
        DB::Connection::connect_with(&options).await
    }

    /// Makes sure that the database outlasts the connections that are lent.
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

    /// Applies what the user set for every connection.
    pub(crate) async fn apply_settings(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<(), Error> {
        for setting in &self.settings {
            <DB as Statements>::run(connection, setting).await?;
        }
        Ok(())
    }
}

impl<DB: Dialect> fmt::Debug for Template<DB> {
    /// Without the options, which know the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template")
            .field("database", &DB::NAME)
            .field("reset", &self.reset)
            .field("settings", &self.settings.len())
            .finish_non_exhaustive()
    }
}
