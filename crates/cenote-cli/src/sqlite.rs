//! SQLite connections, each on a thread of its own, and the manager that makes them.
//!
//! A connection of SQLite blocks. Why one thread for each, and not `spawn_blocking`?
//!
//! - A connection stays on one thread. `spawn_blocking` hops from thread to thread.
//! - A slow statement holds up nobody but its own user. The threads of `spawn_blocking` are shared by the whole program and have one
//!   queue: long statements can use them all up, and other work can starve ours.
//! - Closing is joining: when [`Connection::close`] is done, statement, file and thread are gone.
//!
//! The price is a thread per connection. A pool bounds that.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cenote::Manager;
use rusqlite::ErrorCode;
use tokio::sync::oneshot;

#[cfg(test)]
mod tests;

/// For how long SQLite itself waits for a lock. Longer than any transaction here takes, shorter than the pool's own limits.
const BUSY_TIMEOUT: Duration = Duration::from_secs(3);

/// Opens connections to one database file, and the file's tables if they are missing.
pub(crate) struct SqliteManager {
    path: PathBuf,
    schema: &'static str,
}

impl SqliteManager {
    /// `schema` runs on every open, so it must say `IF NOT EXISTS`.
    pub(crate) fn new(path: impl Into<PathBuf>, schema: &'static str) -> Self {
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

    fn is_broken(&self, connection: &mut Connection) -> bool {
        connection.is_gone()
    }

    fn needs_cleaning(&self, connection: &mut Connection) -> bool {
        !connection.settled
    }

    /// Waits for a statement that its user left running, then rolls back what was left open.
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

    async fn close(&self, connection: Connection) {
        connection.close().await;
    }
}

/// What a connection's thread is sent. Runs there, answers by itself.
type Job = Box<dyn FnOnce(&mut rusqlite::Connection) + Send>;

/// A connection, by way of its thread. Dropped unclosed, it lets the thread finish by itself.
pub(crate) struct Connection {
    jobs: mpsc::Sender<Job>,
    /// Ends when the thread is about to.
    ended: oneshot::Receiver<()>,
    thread: JoinHandle<()>,
    /// Is it known that no statement runs and no transaction is open? False while a job is out, and so it stays false if its user
    /// does not wait for the answer.
    settled: bool,
    /// A job got no answer: its thread died.
    silent: bool,
}

impl Connection {
    async fn open(path: PathBuf, schema: &'static str) -> Result<Self, SqliteError> {
        let (jobs, inbox) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let (tell, told) = oneshot::channel();
        let serve = move || {
            // Declared first, so dropped last: after the connection, and in a panic too.
            let _end: oneshot::Sender<()> = end;
            match prepare(&path, schema) {
                Ok(db) => {
                    // Nobody listens if the open was given up. Then there are no jobs either.
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
    /// Dropping this future does not stop `work`. The connection is unsettled then, and the pool waits for `work` and rolls back before
    /// anybody else gets the connection.
    pub(crate) async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, SqliteError> {
        let (reply, replied) = oneshot::channel();
        let job = Box::new(move |db: &mut rusqlite::Connection| {
            let answer = work(db);
            // Nobody listens if the user gave up.
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

    /// A dying thread goes silent a moment before it is finished, so both count.
    fn is_gone(&self) -> bool {
        self.silent || self.thread.is_finished()
    }

    /// Lets the thread finish its jobs, and waits for its end.
    async fn close(self) {
        drop(self.jobs);
        // Nothing is ever sent: the other end is dropped.
        let _ = self.ended.await;
        // Does not block, for the thread is past its last line. If it panicked, the panic was reported, and the user has its error.
        let _ = self.thread.join();
    }
}

/// A fresh connection, set up. Runs on its thread.
fn prepare(path: &Path, schema: &str) -> rusqlite::Result<rusqlite::Connection> {
    let db = rusqlite::Connection::open(path)?;
    db.busy_timeout(BUSY_TIMEOUT)?;
    // With a write-ahead log readers and the writer do not block each other.
    db.pragma_update(None, "journal_mode", "wal")?;
    // Safe with a write-ahead log, and spares a sync per commit.
    db.pragma_update(None, "synchronous", "normal")?;
    db.execute_batch(schema)?;
    Ok(db)
}

/// The life of a connection's thread: job after job, until its `Connection` is gone.
fn serve(mut db: rusqlite::Connection, inbox: mpsc::Receiver<Job>) {
    for job in inbox {
        job(&mut db);
    }
}

/// What can go wrong with a connection.
#[derive(Debug)]
pub(crate) enum SqliteError {
    /// SQLite said no.
    Refused(rusqlite::Error),
    /// No thread could be started for it.
    NoThread(io::Error),
    /// Its thread died.
    Gone,
}

impl SqliteError {
    /// Was somebody else writing for all of the busy timeout? Then nothing was done, and it may be tried again.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::Refused(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
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
