//! The session: a connection that knows whether its answers still fit its questions, and whether a
//! transaction is open. Its statements are in `queries.rs`.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use mysql_async::consts::StatusFlags;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Connection, DriverError, Error, Opts, QueryResult, TextProtocol};

use crate::error::Ended;
use crate::killer::ServerId;
use crate::transaction::undo;

/// A connection to MySQL or MariaDB, which a [`Lease`](crate::Lease) dereferences to.
///
/// It is a [`Queryable`] of the driver, and so has all functions of the driver for statements. It
/// dereferences to the driver's [`Conn`], and the driver's functions that take a connection take
/// `&mut *lease`.
///
/// A future of the session may be dropped at any time. The driver would then take the late answer
/// for the answer to the next question. A session refuses further statements instead, and its
/// connection is closed when it goes back. That does not hold for calls on a `&mut Conn`.
///
/// ```no_run
/// # async fn f(pool: cenote_mysql::Pool) -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_mysql::mysql_async::prelude::*;
///
/// let mut lease = pool.acquire().await?;
/// lease.query_drop("CREATE TEMPORARY TABLE t (a INT)").await?;
/// lease.exec_drop("INSERT INTO t VALUES (?)", (7,)).await?;
/// assert_eq!(lease.affected_rows(), 1); // a function of the driver's `Conn`
/// let all: Vec<i32> = "SELECT a FROM t".fetch(&mut **lease).await?;
/// assert_eq!(all, [7]);
/// # Ok(()) }
/// ```
pub struct Session {
    pub(crate) conn: Conn,
    /// The options that it was opened with.
    options: Opts,
    /// The server, if running statements may be killed there.
    pub(crate) server: Option<ServerId>,
    /// How many transactions of this crate are open, one inside the other.
    pub(crate) depth: usize,
    /// The outermost transaction that was dropped, and must be rolled back before the next
    /// statement.
    pub(crate) undo: Option<usize>,
    /// Whether something was sent since the session was clean.
    pub(crate) used: bool,
    /// What the holder of the lease said about the next reset.
    pub(crate) reset: Option<bool>,
    /// Set when the transaction around must not go on.
    pub(crate) doomed: Arc<AtomicBool>,
    status: Status,
    /// Whether a statement was sent since `status` was read.
    news: bool,
}

/// Whether the server has a transaction open, by its own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Outside,
    Inside,
    /// The last answer was an error or has not been read, or the driver was used directly.
    Unsure,
}

impl Session {
    pub(crate) fn new(conn: Conn, server: Option<ServerId>) -> Self {
        Self {
            options: conn.opts().clone(),
            conn,
            server,
            depth: 0,
            undo: None,
            used: false,
            reset: None,
            doomed: Arc::default(),
            status: Status::Outside,
            news: false,
        }
    }

    /// Sets whether the session is reset when this lease ends, in place of the pool's
    /// [`Reset`](crate::Reset). An open transaction is rolled back in any case.
    ///
    /// The driver's function of the same name is for the driver's own pool.
    pub fn reset_connection(&mut self, reset: bool) {
        self.reset = Some(reset);
    }

    /// Returns whether the server has a transaction open, as far as its last answer tells.
    pub(crate) fn status(&mut self) -> Status {
        if self.news && self.is_quiet() {
            let flags = self.conn.last_ok_packet().map(|ok| ok.status_flags());
            self.status = match flags {
                Some(flags) if flags.contains(StatusFlags::SERVER_STATUS_IN_TRANS) => {
                    Status::Inside
                }
                Some(_) => Status::Outside,
                None => Status::Unsure,
            };
            self.news = false;
        }
        if self.news {
            Status::Unsure
        } else {
            self.status
        }
    }

    /// Asks the server whether a transaction is open, unless its last answer tells. Rows that were
    /// not read are skipped.
    pub(crate) async fn ask_status(&mut self) -> Result<Status, Error> {
        if self.status() == Status::Unsure {
            self.news = true;
            drain(&mut self.conn).await?;
        }
        Ok(self.status())
    }

    /// Returns whether all answers were read.
    pub(crate) fn is_quiet(&mut self) -> bool {
        !self.conn.is_disconnected() && is_drained(&mut self.conn)
    }

    /// Returns whether the connection is lost, or must not be used any more.
    pub(crate) fn is_over(&self) -> bool {
        self.conn.is_disconnected() || self.doomed.load(Ordering::Acquire)
    }

    /// Returns whether the driver has logged in as another user.
    pub(crate) fn is_astray(&self) -> bool {
        *self.conn.opts() != self.options
    }

    /// Returns whether the next statement of the same scope needs this connection.
    pub(crate) fn must_stay(&mut self) -> bool {
        let in_transaction = self.depth > 0 || self.status == Status::Inside;
        if self.is_over() {
            // Later statements of the transaction must fail, too.
            return in_transaction;
        }
        self.depth > 0 || self.undo.is_some() || self.status() != Status::Outside
    }

    /// Prepares the session for a statement: rolls back what was dropped, and refuses to go on
    /// where that would do harm.
    pub(crate) async fn make_ready(&mut self) -> Result<(), Error> {
        if self.is_over() {
            return Err(DriverError::ConnectionClosed.into());
        }
        if let Some(depth) = self.undo {
            self.sent();
            if let Err(error) = self.conn.query_drop(undo(depth)).await {
                self.doomed.store(true, Ordering::Release);
                return Err(error);
            }
            self.undo = None;
        }
        if self.depth > 0 && self.ask_status().await? == Status::Outside {
            return Err(Error::Other(Box::new(Ended)));
        }
        Ok(())
    }

    /// Records that a statement is sent.
    pub(crate) fn sent(&mut self) {
        self.used = true;
        self.news = true;
    }

    /// Records that a command is sent whose answer has no status. The driver reads one from it.
    pub(crate) fn sent_without_status(&mut self) {
        self.used = true;
        self.status = self.status();
        self.news = false;
    }

    /// Runs statements of this crate.
    pub(crate) async fn run(&mut self, sql: &str) -> Result<(), Error> {
        self.make_ready().await?;
        self.sent();
        self.conn.query_drop(sql).await
    }

    /// Records that the session is as good as new.
    pub(crate) fn cleaned(&mut self) {
        self.depth = 0;
        self.undo = None;
        self.used = false;
        self.reset = None;
        self.doomed = Arc::default();
        self.status = Status::Outside;
        self.news = false;
    }

    /// Gives up the connection, so that the driver only closes its socket. Returns whether it was
    /// lost before.
    pub(crate) fn cut(&mut self) -> bool {
        loop {
            // A call of the driver that is dropped midway leaves a connection that is not used
            // again. A connection that was lost has no socket, so that the call fails at once.
            match self.conn.ping().now_or_never() {
                // The error of an answer that was not read.
                Some(Err(Error::Server(_))) => {}
                Some(Err(_)) => return true,
                Some(Ok(())) | None => return false,
            }
        }
    }
}

fn is_drained(conn: &mut Conn) -> bool {
    QueryResult::<TextProtocol>::new(conn).is_empty()
}

/// Reads all answers that were not read. Their errors concern a caller that is gone.
pub(crate) async fn drain(conn: &mut Conn) -> Result<(), Error> {
    loop {
        match conn.ping().await {
            Err(Error::Server(_)) => {}
            answered => return answered,
        }
    }
}

impl Deref for Session {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for Session {
    /// The driver may do anything with its connection.
    fn deref_mut(&mut self) -> &mut Conn {
        self.used = true;
        self.news = false;
        self.status = Status::Unsure;
        &mut self.conn
    }
}

/// For the driver's functions that take any connection, like `Query::run`.
impl<'a> From<&'a mut Session> for Connection<'a, 'static> {
    fn from(session: &'a mut Session) -> Self {
        Connection::from(&mut **session)
    }
}

impl fmt::Debug for Session {
    /// Leaves out the options, which contain the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.conn.id())
            .field("depth", &self.depth)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}
