//! The session: a connection and its known state.

mod by_sql;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cenote::status::Meter;
use sqlx::{Connection, Error};
use sqlx_core::transaction::TransactionManager;

use crate::command::Command;
use crate::context::Applied;
use crate::dialect::{Dialect, Statements};
use crate::dirt::Dirt;
use crate::error::Class;
use crate::known;
use crate::reading::Reading;
use crate::sandbox::Slot;
use crate::template::Template;
use crate::watchdog::{Watch, watched};
use crate::writer::Right;

/// How far the driver is with its last operation.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is over, and all answers were read.
    Done,
    /// It was dropped between two rows. The rest can be read.
    BetweenRows,
    /// It was dropped while the driver waited for the server.
    Running,
}

/// The resource of the pool: a connection of sqlx, with a record of what may have to be undone.
///
/// Hooks of the pool get it. There `&mut session` is an `Executor`.
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
    /// Its place under the watchdog.
    pub(crate) watch: Option<Arc<Watch<DB>>>,
    /// Runs while a statement does.
    pub(crate) meter: Meter,
    /// The right to write, if this is not the connection of the writer: a lease of that one.
    pub(crate) right: Option<Right>,
}

pub(crate) struct State {
    pub(crate) dirt: Dirt,
    pub(crate) progress: Progress,
    pub(crate) broken: bool,
    /// Whether it stays in its scope.
    pub(crate) stays: bool,
    /// Whether a cleaning began and did not succeed. Then the close does not try to settle it
    /// again.
    pub(crate) unclean: bool,
    /// Whether a statement failed since the transaction began. The transaction may have failed too.
    pub(crate) failed: bool,
    /// Whether the server rolled the whole transaction back, so that statements would run outside.
    pub(crate) given_up: bool,
    /// The number of open transactions by our count. If the driver counts less, one was lost.
    pub(crate) open: usize,
    /// Whether a transaction is open that SQL text began.
    by_sql: bool,
    /// Whether only the server knows if such a transaction is open.
    doubt: bool,
    /// The running text, if it begins or ends transactions.
    soon: Option<Reading>,
    /// Whether the running statement was put into a transaction of its own.
    wrapped: bool,
    /// Set by a nested transaction that was dropped while its connection was in use.
    pub(crate) doomed: Arc<AtomicBool>,
    /// A statement that must run after the transaction.
    pub(crate) afterwards: Option<&'static str>,
    /// The version of the settings of the handle that the session has.
    pub(crate) settings: u64,
    /// The settings of a context that the session has.
    pub(crate) context: Applied,
    /// The depth of the transaction of the sandbox; zero outside a sandbox.
    pub(crate) floor: usize,
    /// Whether the savepoint of the sandbox must move forward before the next statement.
    pub(crate) unsaved: bool,
    /// The part of the budget of all sandboxes that this connection has.
    pub(crate) slot: Option<Slot>,
}

pub(crate) type Manages<DB> = <DB as sqlx::Database>::TransactionManager;

/// Writes a method that runs a command, under the name that it has in `Statements`.
macro_rules! run {
    ($method:ident -> $output:ty) => {
        pub(crate) async fn $method(&mut self, mut command: Command<DB>) -> Result<$output, Error> {
            watched!(self, async {
                self.start_command(&mut command).await?;
                let spare = (DB::HEALS && command.can_be_stale()).then(|| command.copy());
                let mut result = DB::$method(&mut self.connection, command).await;
                if let (Err(error), Some(spare)) = (&result, spare)
                    && self.heals(error).await
                {
                    result = DB::$method(&mut self.connection, spare).await;
                }
                self.complete(result).await
            })
        }
    };
}

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
            watch: None,
            meter: Meter::new("in statements"),
            right: None,
            state: State {
                dirt: Dirt::NONE,
                progress: Progress::Done,
                broken: false,
                stays: false,
                unclean: false,
                failed: false,
                given_up: false,
                open: 0,
                by_sql: false,
                doubt: false,
                soon: None,
                wrapped: false,
                doomed: Arc::default(),
                afterwards: None,
                settings: 0,
                context: Applied::default(),
                floor: 0,
                unsaved: false,
                slot: None,
            },
        }
    }

    /// Returns itself. A lease has a method of the same name, which also sets a label.
    pub(crate) fn session_for(&mut self, _: &str) -> &mut Self {
        self
    }

    /// Returns whether the connection works, but for a database that is no longer there.
    pub(crate) fn is_astray(&self) -> bool {
        DB::is_astray(&self.brake, &self.template)
    }

    /// Returns the depth of nested transactions by the driver's count.
    pub(crate) fn depth(&self) -> usize {
        Manages::<DB>::get_transaction_depth(&self.connection)
    }

    /// Returns whether a transaction is open: by the driver's count, by ours, or by SQL text.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.depth() > 0 || self.state.open > 0 || self.is_begun_by_sql()
    }

    /// Returns whether the next statement of the same scope needs this connection. While a
    /// statement is under way, the answer is that of before. A broken connection leaves the scope,
    /// so that the scope gets another one. With a transaction it stays, so that later statements of
    /// the transaction fail.
    pub(crate) fn must_stay(&mut self) -> bool {
        if self.state.broken {
            return self.is_in_transaction();
        }
        if self.state.progress == Progress::Done {
            self.state.stays = self.is_bound();
        }
        self.state.stays
    }

    fn is_bound(&self) -> bool {
        let changed = self.state.dirt != Dirt::NONE || !self.state.context.is_none();
        self.depth() > 0 || changed
    }

    /// Returns the connection for use outside of this crate. Everything is suspected afterwards.
    pub(crate) fn raw(&mut self) -> &mut DB::Connection {
        self.state.dirt = Dirt::ANY;
        self.state.doubt = true;
        self.state.failed = true;
        self.state.context.doubt();
        &mut self.connection
    }

    /// Prepares the session for this statement and marks it as running.
    pub(crate) async fn start(&mut self, sql: &str) -> Result<(), Error> {
        self.start_reading(sql, known::reading(DB::LANGUAGE, sql))
            .await
    }

    async fn start_reading(&mut self, sql: &str, reading: Reading) -> Result<(), Error> {
        self.make_ready().await?;
        if self.state.given_up || self.depth() < self.state.open {
            return Err(self.ended("the transaction ended before this statement"));
        }
        self.refuse_in_sandbox(sql, &reading)?;
        self.fit_settings().await?;
        self.fit_context().await?;
        self.save().await?;
        self.state.dirt |= reading.dirt;
        if reading.dirt != Dirt::NONE {
            self.state.context.doubt();
        }
        if self.depth() == 0 {
            self.state.doubt |= self.state.by_sql && reading.doubtful;
            if reading.dirt.has(Dirt::TRANSACTION) {
                self.state.soon = Some(reading);
            }
        }
        self.state.progress = Progress::Running;
        self.meter.start();
        Ok(())
    }

    /// Prepares the session for this command. Behind a proxy that lends server connections by the
    /// transaction, the command is prepared and run in one transaction.
    pub(crate) async fn start_command(&mut self, command: &mut Command<DB>) -> Result<(), Error> {
        let reading = command.reading();
        self.start_reading(command.text(), reading).await?;
        if self.template.pooled && command.leave_nothing_prepared() && !self.is_bound() {
            Manages::<DB>::begin(&mut self.connection, None).await?;
            self.state.wrapped = true;
        }
        Ok(())
    }

    pub(crate) async fn make_ready(&mut self) -> Result<(), Error> {
        if self.state.broken {
            return Err(self.ended("the connection of this transaction is lost"));
        }
        if self.state.doomed.load(Ordering::Acquire) {
            return Err(
                self.ended("a nested transaction was dropped while its connection was in use")
            );
        }
        if self.state.progress != Progress::Done {
            let care = self.depth() > 0 || self.state.dirt.has(Dirt::TRANSACTION);
            let cut = self.state.progress == Progress::Running;
            let settled = self.settle(care).await;
            if settled.is_err() && self.state.floor > 0 {
                return Err(self.ended("a statement was dropped before its end"));
            }
            settled?;
            if cut {
                self.state.progress = Progress::Running;
                self.undo().await?;
                self.state.progress = Progress::Done;
            }
        }
        self.catch_up().await
    }

    /// Brings the driver back to a known state after a dropped operation, or marks the session as
    /// broken. `care` spares the transaction.
    pub(crate) async fn settle(&mut self, care: bool) -> Result<(), Error> {
        let settled = DB::settle(
            &mut self.connection,
            self.state.progress,
            &self.brake,
            &self.template,
            care,
        );
        let settled = settled.await;
        match settled {
            Ok(()) => self.state.progress = Progress::Done,
            Err(_) => self.state.broken = true,
        }
        self.state.doubt |= self.state.soon.is_some();
        self.state.failed = true;
        self.state.context.transaction_ended();
        settled
    }

    /// Records what the result of an operation says about the session.
    pub(crate) async fn complete<T>(&mut self, mut result: Result<T, Error>) -> Result<T, Error> {
        if std::mem::take(&mut self.state.wrapped) {
            let committed = match result {
                Ok(_) => Manages::<DB>::commit(&mut self.connection).await,
                Err(_) => Manages::<DB>::rollback(&mut self.connection).await,
            };
            self.state.broken |= result.is_err() && committed.is_err();
            result = result.and_then(|value| committed.map(|()| value));
        }
        let class = result.as_ref().err().map(DB::classify);
        self.note_sql(class.is_none());
        self.state.failed |= class.is_some();
        self.state.given_up |= self.depth() > 0 && result.as_ref().is_err_and(DB::gives_up);
        self.state.broken |= class.is_some_and(Class::poisons);
        if !self.state.broken {
            // A driver may stop reading at the row or the error that it looked for.
            let flushed = self.connection.flush().await;
            self.state.broken = flushed.is_err_and(|error| DB::classify(&error).poisons());
        }
        if result.is_err() {
            self.state.broken |= self.undo().await.is_err();
        }
        self.state.unsaved = true;
        self.state.progress = Progress::Done;
        self.meter.stop();
        result.map_err(|error| self.explain(error))
    }

    run!(execute -> DB::QueryResult);
    run!(fetch_all -> Vec<DB::Row>);
    run!(fetch_optional -> Option<DB::Row>);

    /// Lets the driver prepare its statements again, if one was refused because its tables have
    /// changed. Returns whether the statement can be tried again.
    pub(crate) async fn heals(&mut self, error: &Error) -> bool {
        if !DB::is_stale(error) {
            return false;
        }
        let cleared = self.connection.clear_cached_statements().await;
        self.state.broken |= cleared.is_err_and(|error| DB::classify(&error).poisons());
        // In a transaction the error has ended it.
        self.depth() == 0 && !self.is_begun_by_sql() && !self.state.broken
    }

    /// Runs statements of this crate, which leave no state behind.
    pub(crate) async fn run(&mut self, sql: &str) -> Result<(), Error> {
        self.state.progress = Progress::Running;
        self.meter.start();
        let result = <DB as Statements>::run(&mut self.connection, sql).await;
        self.complete(result).await
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
