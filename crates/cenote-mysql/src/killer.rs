//! Kills the statement of a session that was given up while the server worked on it.
//!
//! The server does not notice a closed socket before it sends an answer. So the session is killed
//! by a statement on another connection. The killed session is never used again, so that a kill
//! that comes late does no harm.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::error::Error;
use crate::template::Template;

/// Less than the default `close_timeout`.
const LIMIT: Duration = Duration::from_secs(2);

/// After a restart of the server, another client can have the same number, but hardly the same
/// address.
const FIND: &str = "SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = ? AND HOST = ?";

/// The connection that kills. It is opened on demand, shared by requests at the same time, and
/// closed after the last of them.
#[derive(Default)]
pub(crate) struct Killer {
    requests: AtomicUsize,
    conn: Mutex<Option<Conn>>,
}

impl Killer {
    /// Ends the session of this number and address, within a time limit.
    pub(crate) async fn kill(&self, template: &Template, id: u32, host: &str) {
        // If the server cannot be reached, it cannot be helped. The session is closed all the same.
        let _ = timeout(LIMIT, self.try_kill(template, id, host)).await;
    }

    async fn try_kill(&self, template: &Template, id: u32, host: &str) -> Result<(), Error> {
        self.requests.fetch_add(1, Ordering::AcqRel);
        let _turn = Turn(self);
        let mut shared = self.conn.lock().await;
        // Out while it is used: a request that is dropped or fails closes it.
        let mut conn = match shared.take() {
            Some(conn) => conn,
            None => template.connect().await?,
        };
        let found: Option<u8> = conn.exec_first(FIND, (id, host)).await?;
        if found.is_some() {
            conn.query_drop(format!("KILL {id}")).await?;
        }
        *shared = Some(conn);
        Ok(())
    }
}

/// A request under way.
struct Turn<'a>(&'a Killer);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let is_last = self.0.requests.fetch_sub(1, Ordering::AcqRel) == 1;
        // If another request has the lock, that request is the last.
        if let (true, Ok(mut conn)) = (is_last, self.0.conn.try_lock()) {
            *conn = None;
        }
    }
}
