//! The control connection of a member, and a task that looks for nudges on it.
//!
//! The server cannot push a message to a client. A second connection could wait for a lock, but it
//! would take a place of the budget. So the control connection asks for a number in memory, again
//! and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::{MYSQL_TABLES, sessions};
use crate::cell::MemberId;
use crate::engine::EngineError;

/// A share moves in two nudges, and should do so in less than 250 milliseconds. The question costs
/// the server a few ten microseconds.
const POLL: Duration = Duration::from_millis(50);

/// The protocol relies on statements that are committed at once and see rows as they are now.
const SESSION: &str = "SET autocommit = 1; \
     SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE";

const TABLES: &str = "SELECT table_name FROM information_schema.tables \
     WHERE table_schema = DATABASE() \
     AND table_name IN ('cenote_fleet', 'cenote_fleet_session', 'cenote_fleet_signal')";

const SIGNAL: &str = "INSERT IGNORE INTO cenote_fleet_signal VALUES (?, ?, 0)";

const NUDGES: &str = "SELECT nudges FROM cenote_fleet_signal WHERE name = ?";

/// As the process list spells it.
const USER: &str = "SELECT user FROM information_schema.processlist WHERE id = CONNECTION_ID()";

/// "table already exists"
const IS_MADE: u16 = 1050;

/// An open control connection. Dropping it closes it.
pub(super) struct Line {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    /// Empty after a call that failed or was dropped.
    conn: Arc<Mutex<Option<Conn>>>,
    user: String,
    nudges: Notify,
    /// The last number of nudges that is known here.
    heard: AtomicU64,
}

/// The right to use the connection. It is closed unless [`Turn::done`] is called.
pub(super) struct Turn {
    pub(super) conn: Conn,
    place: OwnedMutexGuard<Option<Conn>>,
    shared: Arc<Shared>,
}

impl Line {
    /// Without a member it only looks: it makes no tables.
    pub(super) async fn open(
        options: &Opts,
        group: &str,
        member: Option<MemberId>,
    ) -> Result<Self, EngineError> {
        // The driver would leave TCP for a socket of the same machine, by a second connection.
        let options = OptsBuilder::from_opts(options.clone()).prefer_socket(false);
        let mut conn = Conn::new(options).await?;
        conn.query_drop(SESSION).await?;
        let (tagged, id) = match member {
            Some(id) => {
                let [_, memory @ ..] = MYSQL_TABLES;
                make_missing(&mut conn, &memory).await?;
                (group, id)
            }
            None => ("", MemberId(0)), // no group has this name, so no member counts it
        };
        conn.query_drop(sessions::tag(tagged, id)).await?;
        conn.exec_drop(SIGNAL, (group, fastrand::u64(..))).await?;
        conn.exec_drop(sessions::TIDY, (tagged,)).await?;
        let user: Option<String> = conn.query_first(USER).await?;
        let heard: Option<u64> = conn.exec_first(NUDGES, (group,)).await?;
        let shared = Arc::new(Shared {
            conn: Arc::new(Mutex::new(Some(conn))),
            user: user.ok_or("the server does not list its sessions")?,
            nudges: Notify::new(),
            heard: AtomicU64::new(heard.unwrap_or(0)),
        });
        let task = tokio::spawn(listen(Arc::clone(&shared), group.to_owned()));
        Ok(Self { shared, task })
    }

    /// Waits for the connection. Returns `None` if it was lost.
    pub(super) async fn turn(&self) -> Option<Turn> {
        let mut place = Arc::clone(&self.shared.conn).lock_owned().await;
        Some(Turn {
            conn: place.take()?,
            place,
            shared: Arc::clone(&self.shared),
        })
    }

    pub(super) fn is_open(&self) -> bool {
        // While it is in use, it is not known to be lost.
        let place = self.shared.conn.try_lock();
        place.map_or(true, |conn| conn.is_some())
    }

    pub(super) async fn nudged(&self) {
        self.shared.nudges.notified().await;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Turn {
    /// Keeps the connection for the next call.
    pub(super) fn done(mut self) {
        *self.place = Some(self.conn);
    }

    pub(super) fn user(&self) -> &str {
        &self.shared.user
    }

    /// Takes the number of the own nudge as heard, unless there was another one before.
    pub(super) fn has_nudged(&self) {
        if let Some(number) = self.conn.last_insert_id() {
            let before = number.wrapping_sub(1);
            let heard = &self.shared.heard;
            // If it fails, the task will see both.
            let _ = heard.compare_exchange(before, number, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Makes the table of the cells with the group in it, if there is none. A group in a table that
    /// was there is not known to be new.
    pub(super) async fn make_cells(&mut self, group: &str) -> Result<(), EngineError> {
        let [cells, ..] = MYSQL_TABLES;
        // One statement, so that no member sees the table without the group. The name of a group
        // has no quotes.
        let cells = format!("{cells} SELECT '{group}' AS name, '' AS cell");
        make_missing(&mut self.conn, &[&cells]).await
    }
}

/// Makes those tables that are not there.
async fn make_missing(conn: &mut Conn, tables: &[&str]) -> Result<(), EngineError> {
    let there: Vec<String> = conn.query(TABLES).await?;
    for table in tables {
        let is_there = |name: &String| table.starts_with(&format!("CREATE TABLE {name} "));
        if there.iter().any(is_there) {
            continue;
        }
        match conn.query_drop(*table).await {
            // Another member has made it at the same time.
            Err(mysql_async::Error::Server(error)) if error.code == IS_MADE => {}
            made => made?,
        }
    }
    Ok(())
}

/// Tells nudges until the connection is lost, and tells that, too.
async fn listen(shared: Arc<Shared>, group: String) {
    while let Some(number) = shared.ask(&group).await {
        if shared.heard.swap(number, Ordering::Relaxed) != number {
            shared.nudges.notify_one();
        }
        sleep(POLL).await;
    }
    shared.nudges.notify_one();
}

impl Shared {
    /// Asks for the number of nudges. Returns `None` if the connection is lost.
    async fn ask(&self, group: &str) -> Option<u64> {
        let mut place = self.conn.lock().await;
        // Out while it is used: if this task is aborted, the connection is closed.
        let mut conn = place.take()?;
        let number = conn.exec_first(NUDGES, (group,)).await.ok()??;
        *place = Some(conn);
        Some(number)
    }
}
