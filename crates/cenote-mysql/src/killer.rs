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
use tokio::time::{Instant, timeout};

use crate::error::Error;
use crate::template::Template;

/// Less than the default `close_timeout`.
const LIMIT: Duration = Duration::from_secs(2);

const NAME: &str = "SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id)";

const SECOND: Duration = Duration::from_secs(1);

const UPTIME: &str = "SHOW GLOBAL STATUS LIKE 'Uptime'";

/// The server that a session is on. After a failover or a restart, the same address can lead to
/// another one, where the number of the session belongs to another client.
pub(crate) struct ServerId {
    name: String,
    since: Instant,
}

impl ServerId {
    /// Asks a new connection.
    #[expect(
        clippy::disallowed_methods,
        reason = "the age of a session is compared with the uptime of its server"
    )]
    pub(crate) async fn of(conn: &mut Conn) -> Result<Self, mysql_async::Error> {
        let name: Option<String> = conn.query_first(NAME).await?;
        Ok(Self {
            name: name.unwrap_or_default(),
            since: Instant::now(),
        })
    }

    /// Returns whether a connection is to this server, and the server has run all the time.
    async fn is_still_there(&self, conn: &mut Conn) -> Result<bool, mysql_async::Error> {
        let name: Option<String> = conn.query_first(NAME).await?;
        let uptime: Option<(String, u64)> = conn.query_first(UPTIME).await?;
        let seconds = uptime.map_or(0, |(_, seconds)| seconds);
        // The server counts whole seconds, and may be up to one too high. In doubt, no session is
        // killed.
        let has_run = Duration::from_secs(seconds) >= self.since.elapsed() + SECOND;
        Ok(has_run && name.as_ref() == Some(&self.name))
    }
}

/// The connection that kills. It is opened on demand, shared by requests at the same time, and
/// closed after the last of them.
#[derive(Default)]
pub(crate) struct Killer {
    requests: AtomicUsize,
    conn: Mutex<Option<Conn>>,
}

impl Killer {
    /// Ends the session of this number on this server, within a time limit.
    pub(crate) async fn kill(&self, template: &Template, id: u32, server: &ServerId) {
        // If the server cannot be reached, it cannot be helped. The session is closed all the same.
        let _ = timeout(LIMIT, self.try_kill(template, id, server)).await;
    }

    async fn try_kill(&self, template: &Template, id: u32, server: &ServerId) -> Result<(), Error> {
        self.requests.fetch_add(1, Ordering::AcqRel);
        let _turn = Turn(self);
        let mut shared = self.conn.lock().await;
        // Out while it is used: a request that is dropped or fails closes it.
        let mut conn = match shared.take() {
            Some(conn) => conn,
            None => template.connect().await?,
        };
        if server.is_still_there(&mut conn).await? {
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
