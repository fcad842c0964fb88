//! SQLite connections, each on a thread of its own, and their manager.
//!
//! A connection of SQLite blocks. The reasons for a thread per connection instead of
//! `spawn_blocking` are:
//!
//! - A connection stays on one thread. `spawn_blocking` moves it from thread to thread.
//! - A slow statement delays only its own user. The whole program shares the threads of
//!   `spawn_blocking`, which have one queue: long statements can use them all up, and other work
//!   can starve ours.
//! - Closing joins the thread: after [`Connection::close`], the statement, the file and the thread
//!   are gone.
//!
//! The price is a thread per connection, and the pool bounds their number.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cenote::{LeaseEnd, Manager};
use rusqlite::ErrorCode;
use tokio::sync::oneshot;

#[cfg(test)]
mod tests;

/// How long SQLite itself waits for a lock. This is longer than any transaction here, and shorter
/// than the pool's own limits.
const BUSY_TIMEOUT: Duration = Duration::from_secs(3);

/// Opens connections to one database file, and makes the file's tables if they are missing.
#[derive(Debug)]
pub(super) struct SqliteManager {
    path: PathBuf,
    schema: &'static str,
}

impl SqliteManager {
    /// Makes a manager. `schema` runs on every open, so it must say `IF NOT EXISTS`.
    pub(super) fn new(path: impl Into<PathBuf>, schema: &'static str) -> Self {
        Self {
            path: path.into(),
            schema,
        }
    }
}

impl Manager for SqliteManager {
    type Resource = Connection;
    type Error = SqliteError;

    async fn open(&self) -> Result<Connection, SqliteError> {
        Connection::open(self.path.clone(), self.schema).await
    }

    async fn check(&self, connection: &mut Connection) -> Result<(), SqliteError> {
        connection
            .run(|db| db.query_row("SELECT 1", [], |_| Ok(())))
            .await
    }

    fn is_broken(&self, connection: &mut Connection, _: LeaseEnd) -> bool {
        connection.is_gone()
    }

    fn needs_cleaning(&self, connection: &mut Connection) -> bool {
        !connection.settled
    }

    /// Waits for a statement that its user left running, and then rolls back an open transaction.
    async fn clean(&self, connection: &mut Connection) -> Result<(), SqliteError> {
        connection
            .run(|db| {
                if db.is_autocommit() {
                    Ok(())
                } else {
                    db.execute_batch("ROLLBACK")
                }
            })
            .await
    }

    async fn close(&self, connection: Connection) -> Result<(), SqliteError> {
        connection.close().await;
        Ok(())
    }
}

/// A job for a connection's thread. It runs there and sends its own reply.
type Job = Box<dyn FnOnce(&mut rusqlite::Connection) + Send>;

/// A handle to a connection on its thread. If it is dropped without a close, the thread ends by
/// itself.
pub(super) struct Connection {
    jobs: mpsc::Sender<Job>,
    /// Resolves just before the thread ends.
    ended: oneshot::Receiver<()>,
    thread: JoinHandle<()>,
    /// No statement runs and no transaction is open. It is false while a job runs, and it stays
    /// false if the user does not wait for the reply.
    settled: bool,
    /// A job got no reply, because its thread died.
    silent: bool,
}

impl Connection {
    async fn open(path: PathBuf, schema: &'static str) -> Result<Self, SqliteError> {
        let (jobs, inbox) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let serve = move || {
            // Declared first, so it is dropped last: after the connection, and in a panic too.
            let _end: oneshot::Sender<()> = end;
            match prepare(&path, schema) {
                Ok(db) => {
                    // The receiver is gone if the open was dropped. Then no jobs follow either.
                    let _ = tell.send(Ok(()));
                    serve(db, inbox);
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                }
            }
        };
        let thread = thread::Builder::new().name("sqlite".into()).spawn(serve)?;
        told.await.map_err(|_| SqliteError::Gone)??;
        Ok(Self {
            jobs,
            ended,
            thread,
            settled: true,
            silent: false,
        })
    }

    /// Runs `work` on the connection's thread.
    ///
    /// # Cancel safety
    /// Dropping this future does not stop `work`. The connection is unsettled then: the pool waits
    /// for `work` and rolls back before it lends the connection again.
    pub(super) async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, SqliteError> {
        let (reply, replied) = oneshot::channel();
        let job = Box::new(move |db: &mut rusqlite::Connection| {
            let answer = work(db);
            // The receiver is gone if the user dropped its future.
            let _ = reply.send((answer, db.is_autocommit()));
        });
        self.settled = false;
        let sent = self.jobs.send(job).is_ok();
        match replied.await {
            Ok((answer, settled)) if sent => {
                self.settled = settled;
                Ok(answer?)
            }
            _ => {
                self.silent = true;
                Err(SqliteError::Gone)
            }
        }
    }

    /// A dying thread stops replying a moment before it is finished, so both count.
    fn is_gone(&self) -> bool {
        self.silent || self.thread.is_finished()
    }

    /// Lets the thread finish its jobs, and waits for its end.
    async fn close(self) {
        drop(self.jobs);
        // No value is ever sent. The sender is dropped.
        let _ = self.ended.await;
        // This does not block, because the thread is past its last line. A panic of the thread was
        // printed, and the user has its error.
        let _ = self.thread.join();
    }
}

/// Opens and sets up a connection. It runs on the connection's thread.
fn prepare(path: &Path, schema: &str) -> rusqlite::Result<rusqlite::Connection> {
    let db = rusqlite::Connection::open(path)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    // With a write-ahead log, readers and the writer do not block each other.
    db.pragma_update(None, "journal_mode", "wal")?;
    // Safe with a write-ahead log, and saves a sync per commit.
    db.pragma_update(None, "synchronous", "normal")?;
    db.execute_batch(schema)?;
    Ok(db)
}

/// Runs jobs on a connection's thread until its `Connection` is gone.
fn serve(mut db: rusqlite::Connection, inbox: mpsc::Receiver<Job>) {
    for job in inbox {
        job(&mut db);
    }
}

/// An error of a connection.
#[derive(Debug)]
pub(super) enum SqliteError {
    /// SQLite refused a statement.
    Refused(rusqlite::Error),
    /// The system could not start a thread for it.
    NoThread(io::Error),
    /// Its thread died.
    Gone,
}

impl SqliteError {
    /// Returns whether another connection was writing for all of the busy timeout. Then nothing was
    /// done, and the write may be tried again.
    pub(super) fn is_busy(&self) -> bool {
        let Self::Refused(error) = self else {
            return false;
        };
        error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
    }
}

impl fmt::Display for SqliteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused(_) => "sqlite refused a statement",
            Self::NoThread(_) => "no thread could be started for a connection",
            Self::Gone => "the thread of this connection died: acquire another one",
        })
    }
}

impl Error for SqliteError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(error) => Some(error),
            Self::NoThread(error) => Some(error),
            Self::Gone => None,
        }
    }
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Refused(error)
    }
}

impl From<io::Error> for SqliteError {
    fn from(error: io::Error) -> Self {
        Self::NoThread(error)
    }
}
