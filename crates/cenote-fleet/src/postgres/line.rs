//! The control connection of a member.

use std::future::poll_fn;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Socket};

use super::{CHANNEL, TABLE};
use crate::engine::EngineError;

/// The protocol relies on commits that last and on rows as they are now, whatever the role or the
/// database has as its default.
const SESSION: &str = "SET synchronous_commit = on; SET default_transaction_read_only = off; \
     SET default_transaction_isolation = 'read committed'; LISTEN cenote_fleet";

/// An open control connection. Dropping it closes it.
pub(super) struct Line {
    pub(super) client: Client,
    task: JoinHandle<()>,
    nudges: Arc<Notify>,
}

impl Line {
    /// `is_nudge` tells by the payload whether a notification is a nudge.
    pub(super) async fn open<T>(
        config: &Config,
        tls: T,
        is_nudge: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Self, EngineError>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
    {
        let (client, connection) = config.connect(tls).await?;
        let nudges = Arc::new(Notify::new());
        let heard = Arc::clone(&nudges);
        let line = Self {
            client,
            task: tokio::spawn(listen(connection, is_nudge, heard)),
            nudges,
        };
        line.client.batch_execute(SESSION).await?;
        Ok(line)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    pub(super) async fn nudged(&self) {
        self.nudges.notified().await;
    }

    /// Makes the table and the group in it, if there is no table. A group in a table that was there
    /// is not known to be new.
    pub(super) async fn make_table(&self, group: &str) -> Result<(), EngineError> {
        let sql = "SELECT to_regclass($1::text) IS NOT NULL";
        let has_table = self.client.query_one(sql, &[&CHANNEL]).await?.try_get(0)?;
        if has_table {
            return Ok(());
        }
        // Both or none: the statements of one message are one transaction. The name of a group has
        // no quotes.
        let sql = format!("{TABLE}; INSERT INTO cenote_fleet VALUES ('{group}', 0, '')");
        match self.client.batch_execute(&sql).await {
            Err(error) if is_made(error.code()) => Ok(()),
            made => Ok(made?),
        }
    }
}

/// Another member has made the table at the same time.
fn is_made(code: Option<&SqlState>) -> bool {
    code == Some(&SqlState::DUPLICATE_TABLE) || code == Some(&SqlState::UNIQUE_VIOLATION)
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Drives the connection, and hears nudges.
async fn listen<S, T>(
    mut connection: Connection<S, T>,
    is_nudge: impl Fn(&str) -> bool,
    nudges: Arc<Notify>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notification(note)) if is_nudge(note.payload()) => nudges.notify_one(),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    nudges.notify_one(); // the connection is lost
}
