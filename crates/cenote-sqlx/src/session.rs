//! The session: a connection, and what is known about the state it is in.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cenote::Lease;
use sqlx::{Connection, Error};
use sqlx_core::transaction::TransactionManager;

use crate::command::Command;
use crate::dialect::{Dialect, Statements};
use crate::error::{Class, lost};
use crate::scan::{self, Dirt};
use crate::template::Template;
use crate::transaction::TransactionOptions;
use crate::writer::Writer;

/// Where the driver stands with its last operation.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flight {
    /// Done, all of it read.
    Landed,
    /// Dropped between two rows: unread rows, at a known place.
    Halfway,
    /// Dropped while it waited for the server: anywhere.
    Flying,
}

/// What a pool of this crate lends: a connection of sqlx, with a record of what may have to be undone.
///
/// Hooks of the pool meet it; there `&mut session` is an `Executor`.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::{Db, Session};
///
/// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").pool(|pool| {
///     pool.before_acquire(async |session: &mut Session<_>| sqlx::query("SELECT 1").execute(session).await.is_ok())
/// });
/// let db = db.build()?;
/// for _ in 0..2 {
///     sqlx::query("SELECT 1").execute(&db).await?;
/// }
/// assert_eq!(db.pool().status().opened, 1);
/// # Ok(()) }
/// # #[cfg(not(feature = "sqlite"))] fn main() {}
/// ```
pub struct Session<DB: Dialect> {
    pub(crate) connection: DB::Connection,
    pub(crate) state: State,
    brake: DB::Brake,
    pub(crate) template: Arc<Template<DB>>,
}

pub(crate) struct State {
    pub(crate) dirt: Dirt,
    pub(crate) flight: Flight,
    pub(crate) broken: bool,
    /// Was a clean begun that did not come to its end? What it could not settle in its time, a close need not try again.
    pub(crate) unclean: bool,
    /// An SQL error since the transaction began: it may have failed as a whole.
    pub(crate) failed: bool,
    /// The server gave the whole transaction up. What would follow ran outside it.
    pub(crate) given_up: bool,
    /// How many transactions are open by our count. A driver that counts less has lost one.
    pub(crate) open: usize,
    /// Is a transaction open that the text of a statement began?
    by_sql: bool,
    /// And will it be, after the text that runs? If that ends well, and if not.
    soon: Option<(bool, bool)>,
    /// Was a transaction put around the one statement that runs?
    wrapped: bool,
    /// Set by a nested transaction that was dropped while something else used the connection.
    pub(crate) doomed: Arc<AtomicBool>,
    /// Must be run when the transaction is over.
    pub(crate) afterwards: Option<&'static str>,
    /// The right to write, where there is only one.
    pub(crate) writer: Option<Lease<Writer>>,
}

type Manages<DB> = <DB as sqlx::Database>::TransactionManager;

impl<DB: Dialect> Session<DB> {
    pub(crate) fn new(
        connection: DB::Connection,
        brake: DB::Brake,
        template: Arc<Template<DB>>,
    ) -> Self {
        Self {
            connection,
            brake,
            template,
            state: State {
                dirt: Dirt::NONE,
                flight: Flight::Landed,
                broken: false,
                unclean: false,
                failed: false,
                given_up: false,
                open: 0,
                by_sql: false,
                soon: None,
                wrapped: false,
                doomed: Arc::default(),
                afterwards: None,
                writer: None,
            },
        }
    }

    /// Itself, whatever the statement.
    pub(crate) fn session_for(&mut self, _: &str) -> &mut Self {
        self
    }

    /// Does it answer, but for a database that is not there any longer?
    pub(crate) fn is_astray(&self) -> bool {
        DB::is_astray(&self.brake, &self.template)
    }

    /// How deep in transactions it is, by the driver's count.
    pub(crate) fn depth(&self) -> usize {
        Manages::<DB>::get_transaction_depth(&self.connection)
    }

    /// Is a transaction open, by the driver's count, by ours, or by the text of what was run?
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.depth() > 0 || self.state.open > 0 || self.is_begun_by_sql()
    }

    fn is_begun_by_sql(&self) -> bool {
        self.state.by_sql || self.state.soon.is_some_and(|(well, _)| well)
    }

    /// No transaction is open.
    pub(crate) fn forget_transactions(&mut self) {
        self.state.open = 0;
        self.state.by_sql = false;
        self.state.soon = None;
    }

    /// Would the next user of the same scope miss something if it got another connection?
    pub(crate) fn is_bound(&self) -> bool {
        self.depth() > 0 || self.state.dirt != Dirt::NONE
    }

    /// The connection, for foreign hands: nobody knows what they do to it.
    pub(crate) fn raw(&mut self) -> &mut DB::Connection {
        self.state.dirt = Dirt::ANY;
        self.state.failed = true;
        &mut self.connection
    }

    /// Ready for this statement, in flight from now on.
    pub(crate) async fn take_off(&mut self, sql: &str) -> Result<(), Error> {
        self.make_ready().await?;
        if self.state.given_up || self.depth() < self.state.open {
            return Err(lost("the transaction of this statement has ended before"));
        }
        let dirt = DB::scan(sql);
        self.state.dirt |= dirt;
        if dirt.has(Dirt::TRANSACTION) && self.depth() == 0 {
            let well = scan::open_after(sql, self.state.by_sql);
            // One statement that fails begins nothing; of several the first may have.
            let several = sql.trim_end().trim_end_matches(';').contains(';');
            self.state.soon = Some((well, self.state.by_sql || well && several));
        }
        self.state.flight = Flight::Flying;
        Ok(())
    }

    /// Ready for this command. Behind a proxy that lends server connections by the transaction, preparing and running it must be one.
    pub(crate) async fn take_off_with(&mut self, command: &mut Command<DB>) -> Result<(), Error> {
        self.take_off(command.text()).await?;
        if self.template.pooled && command.leave_nothing_prepared() && !self.is_bound() {
            Manages::<DB>::begin(&mut self.connection, None).await?;
            self.state.wrapped = true;
        }
        Ok(())
    }

    async fn make_ready(&mut self) -> Result<(), Error> {
        if self.state.broken {
            return Err(lost("the connection of this transaction was lost before"));
        }
        if self.state.doomed.load(Ordering::Acquire) {
            return Err(lost(
                "a nested transaction was dropped while its connection was in use elsewhere",
            ));
        }
        if self.state.flight != Flight::Landed {
            let care = self.depth() > 0 || self.state.dirt.has(Dirt::TRANSACTION);
            self.settle(care).await?;
        }
        Ok(())
    }

    /// After a dropped operation: brings the driver back to a known place, or declares the session broken. With `care` for the
    /// transaction that it is in.
    pub(crate) async fn settle(&mut self, care: bool) -> Result<(), Error> {
        let settled = DB::settle(
            &mut self.connection,
            self.state.flight,
            &self.brake,
            &self.template,
            care,
        );
        let settled = settled.await;
        match settled {
            Ok(()) => self.state.flight = Flight::Landed,
            Err(_) => self.state.broken = true,
        }
        self.state.failed = true;
        settled
    }

    /// After an operation: what does its end say about the session?
    pub(crate) async fn land<T>(&mut self, mut result: Result<T, Error>) -> Result<T, Error> {
        if std::mem::take(&mut self.state.wrapped) {
            let committed = match result {
                Ok(_) => Manages::<DB>::commit(&mut self.connection).await,
                Err(_) => Manages::<DB>::rollback(&mut self.connection).await,
            };
            self.state.broken |= result.is_err() && committed.is_err();
            result = result.and_then(|value| committed.map(|()| value));
        }
        let class = result.as_ref().err().map(DB::classify);
        if let Some((well, badly)) = self.state.soon.take() {
            self.state.by_sql = if class.is_none() { well } else { badly };
        }
        self.state.failed |= class.is_some();
        self.state.given_up |= self.depth() > 0 && result.as_ref().is_err_and(DB::gives_up);
        self.state.broken |= class.is_some_and(Class::poisons);
        if !self.state.broken {
            // A driver may stop reading at the row or the error that it was after.
            let flushed = self.connection.flush().await;
            self.state.broken = flushed.is_err_and(|error| DB::classify(&error).poisons());
        }
        self.state.flight = Flight::Landed;
        result
    }

    pub(crate) async fn execute(
        &mut self,
        mut command: Command<DB>,
    ) -> Result<DB::QueryResult, Error> {
        self.take_off_with(&mut command).await?;
        let result = DB::execute(&mut self.connection, command).await;
        self.land(result).await
    }

    pub(crate) async fn fetch_all(
        &mut self,
        mut command: Command<DB>,
    ) -> Result<Vec<DB::Row>, Error> {
        self.take_off_with(&mut command).await?;
        let result = DB::fetch_all(&mut self.connection, command).await;
        self.land(result).await
    }

    pub(crate) async fn fetch_optional(
        &mut self,
        mut command: Command<DB>,
    ) -> Result<Option<DB::Row>, Error> {
        self.take_off_with(&mut command).await?;
        let result = DB::fetch_optional(&mut self.connection, command).await;
        self.land(result).await
    }

    /// Runs statements that are our own, and leave nothing behind.
    pub(crate) async fn run(&mut self, sql: &str) -> Result<(), Error> {
        self.state.flight = Flight::Flying;
        let result = <DB as Statements>::run(&mut self.connection, sql).await;
        self.land(result).await
    }

    /// Begins a transaction, or a savepoint in one. Returns how deep it is now.
    pub(crate) async fn begin(&mut self, options: &TransactionOptions) -> Result<usize, Error> {
        self.make_ready().await?;
        self.refuse_inside_sql()?;
        let nested = self.depth() > 0;
        if nested && *options != TransactionOptions::default() {
            return Err(Error::InvalidSavePointStatement);
        }
        let statement = DB::begin(options).filter(|_| !nested);
        let statement =
            statement.map(|sql| sqlx::SqlSafeStr::into_sql_str(sqlx::AssertSqlSafe(sql)));
        self.state.flight = Flight::Flying;
        if !nested {
            self.state.failed = false;
            self.state.given_up = false;
            self.state.afterwards = DB::after(options);
        }
        let result = Manages::<DB>::begin(&mut self.connection, statement).await;
        self.land(result).await?;
        self.state.open = self.depth();
        Ok(self.state.open)
    }

    /// Begun inside a transaction that SQL text began, one of ours would commit or undo that: MySQL commits it without a word.
    fn refuse_inside_sql(&self) -> Result<(), Error> {
        if self.depth() > 0 || !self.is_begun_by_sql() {
            return Ok(());
        }
        Err(Error::InvalidArgument(String::from(
            "a transaction that SQL text began is open on this connection: end it first, or begin it with `Db::begin`",
        )))
    }

    /// Commits the transaction that is `depth` deep, if it is still the innermost and has not failed on the server.
    pub(crate) async fn commit(&mut self, depth: usize) -> Result<(), Error> {
        self.make_ready().await?;
        if self.depth() != depth || self.state.given_up {
            return Err(lost("the transaction ended before its commit"));
        }
        // PostgreSQL answers the commit of a failed transaction with success, and rolls it back.
        if self.state.failed {
            self.run(DB::PROBE).await?;
        }
        self.state.flight = Flight::Flying;
        let result = Manages::<DB>::commit(&mut self.connection).await;
        self.land(result).await?;
        self.finish(depth).await
    }

    /// Rolls back the transaction that is `depth` deep.
    pub(crate) async fn roll_back(&mut self, depth: usize) -> Result<(), Error> {
        self.make_ready().await?;
        if self.depth() != depth {
            return Err(lost("the transaction ended before its rollback"));
        }
        self.state.flight = Flight::Flying;
        let result = Manages::<DB>::rollback(&mut self.connection).await;
        self.land(result).await?;
        self.state.failed = false;
        self.finish(depth).await
    }

    async fn finish(&mut self, depth: usize) -> Result<(), Error> {
        self.state.open = depth - 1;
        if depth > 1 {
            return Ok(());
        }
        self.state.given_up = false;
        let afterwards = self.state.afterwards.take();
        let done = match afterwards {
            Some(sql) => self.run(sql).await,
            None => Ok(()),
        };
        self.state.writer = None;
        done
    }

    /// The transaction that is `depth` deep was dropped. If the session goes back to its pool, the cleaning there rolls it back. If it
    /// `stays` in its scope, that is done before whatever is done next.
    pub(crate) fn abandon(&mut self, depth: usize, stays: bool) {
        let over = self.depth() < depth && self.state.flight != Flight::Flying;
        if !stays || over {
            return;
        }
        self.state.open = depth - 1;
        Manages::<DB>::start_rollback(&mut self.connection);
        self.state.failed = true;
        if self.state.flight == Flight::Landed {
            self.state.flight = Flight::Halfway;
        }
    }
}

impl<DB: Dialect> fmt::Debug for Session<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("database", &DB::NAME)
            .field("dirt", &self.state.dirt)
            .field("depth", &self.depth())
            .finish_non_exhaustive()
    }
}
