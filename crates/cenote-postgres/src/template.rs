//! The template: how connections are opened, and how they are reset.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_postgres::{Client, Config};

use crate::cancel::Canceller;
use crate::connect::{Connect, Line, OnNotice};
use crate::credentials::AskCredentials;
use crate::error::Error;

/// How session state is undone before a connection is lent again. An open transaction is always
/// rolled back.
///
/// ```
/// use cenote_postgres::{Pool, Reset};
///
/// let pool = Pool::from_url("postgres://app@localhost/shop").reset(Reset::Always).build()?;
/// assert_eq!(pool.status().opened, 0);
/// # Ok::<_, cenote_postgres::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Reset {
    /// Session state is kept.
    Never,
    /// The session is reset if the text of a statement suggests that it changed the session, or if
    /// the driver's client was used. Changes by a function on the server are not noticed.
    #[default]
    IfDirty,
    /// The session is reset after every use.
    Always,
    /// This statement runs after every use, and the settings of the builder run after it. It may be
    /// `DISCARD ALL`: cached statements are then prepared again.
    Query(String),
}

pub(crate) type AfterConnect =
    dyn for<'c> Fn(&'c Client) -> BoxFuture<'c, Result<(), tokio_postgres::Error>> + Send + Sync;

pub(crate) struct Template {
    pub(crate) options: Config,
    pub(crate) connector: Arc<dyn Connect>,
    pub(crate) credentials: Option<Arc<AskCredentials>>,
    pub(crate) settings: Vec<String>,
    pub(crate) after_connect: Option<Box<AfterConnect>>,
    pub(crate) on_notice: Option<Arc<OnNotice>>,
    pub(crate) reset: Reset,
    /// Whether a dropped statement may be cancelled on the server.
    pub(crate) cancel: bool,
    pub(crate) canceller: Canceller,
    pub(crate) cache_capacity: usize,
}

impl Template {
    pub(crate) async fn connect(&self) -> Result<(Client, Line), Error> {
        let on_notice = self.on_notice.clone();
        let Some(ask) = &self.credentials else {
            return Ok(self.connector.connect(&self.options, on_notice).await?);
        };
        let credentials = ask().await.map_err(Error::Credentials)?;
        let mut options = self.options.clone();
        options.user(credentials.user());
        if let Some(password) = credentials.password() {
            options.password(password);
        }
        Ok(self.connector.connect(&options, on_notice).await?)
    }

    /// Runs the settings and the code of the user.
    pub(crate) async fn apply_settings(&self, client: &Client) -> Result<(), Error> {
        for sql in &self.settings {
            client.batch_execute(sql).await?;
        }
        match &self.after_connect {
            Some(code) => Ok(code(client).await?),
            None => Ok(()),
        }
    }
}
