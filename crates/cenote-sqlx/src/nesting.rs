//! Transactions of a session, and savepoints in them: how each begins and ends.

use sqlx::{Connection, Error};
use sqlx_core::transaction::TransactionManager;

use crate::dialect::Dialect;
use crate::error::lost;
use crate::session::{Manages, Progress, Session};
use crate::transaction::TransactionOptions;
use crate::watchdog::watched;

impl<DB: Dialect> Session<DB> {
    /// Begins a transaction, or a savepoint in one. Returns the depth.
    pub(crate) async fn begin(&mut self, options: &TransactionOptions) -> Result<usize, Error> {
        watched!(self, self.begin_now(options))
    }

    async fn begin_now(&mut self, options: &TransactionOptions) -> Result<usize, Error> {
        self.prepare_to_begin().await?;
        let sandboxed = self.state.floor > 0;
        let nested = self.depth() > self.state.floor;
        if nested && options.is_special() {
            return Err(Error::InvalidSavePointStatement);
        }
        let statement = match options.text {
            Some(text) => Some(text.to_owned()),
            None => DB::begin(options),
        };
        let statement = statement.filter(|_| self.depth() == 0);
        let statement =
            statement.map(|sql| sqlx::SqlSafeStr::into_sql_str(sqlx::AssertSqlSafe(sql)));
        self.state.progress = Progress::Running;
        self.meter.start();
        if !nested {
            self.state.failed = false;
            self.state.given_up = false;
            self.state.afterwards = DB::after(options);
        }
        let result = Manages::<DB>::begin(&mut self.connection, statement).await;
        self.complete(result).await?;
        self.state.open = self.depth();
        if let Some(sql) = DB::READ_ONLY.filter(|_| sandboxed && options.read_only) {
            self.run(sql).await?;
        }
        Ok(self.state.open)
    }

    /// Brings the session into a state in which a transaction can begin.
    pub(crate) async fn prepare_to_begin(&mut self) -> Result<(), Error> {
        self.make_ready().await?;
        self.ask_about_sql().await?;
        self.refuse_inside_sql()?;
        let sandboxed = self.state.floor > 0;
        if sandboxed && (self.state.given_up || self.depth() < self.state.open) {
            return Err(self.ended("the server ended its transaction"));
        }
        self.fit_settings().await?;
        self.fit_context().await?;
        self.save().await
    }

    /// Waits until the driver has done a rollback that was queued by a transaction of sqlx. The
    /// driver of SQLite counts transactions in a thread of its own, so the count may be old.
    pub(crate) async fn catch_up(&mut self) -> Result<(), Error> {
        if self.depth() <= self.state.open {
            return Ok(());
        }
        self.state.progress = Progress::Running;
        let answered = self.connection.ping().await;
        self.complete(answered).await
    }

    /// Refuses a transaction inside one that SQL text began. The inner one would end the outer one:
    /// MySQL commits it silently. The server was asked before.
    fn refuse_inside_sql(&self) -> Result<(), Error> {
        if self.depth() > 0 || !self.is_begun_by_sql() {
            return Ok(());
        }
        Err(Error::InvalidArgument(String::from(
            "SQL text began a transaction on this connection: end it first, or begin it with `Db::begin`",
        )))
    }

    /// Commits the transaction at `depth`, if it is the innermost one and has not failed.
    pub(crate) async fn commit(&mut self, depth: usize) -> Result<(), Error> {
        watched!(self, self.commit_now(depth))
    }

    async fn commit_now(&mut self, depth: usize) -> Result<(), Error> {
        self.make_ready().await?;
        if self.depth() != depth || self.state.given_up {
            return Err(lost("the transaction ended before its commit"));
        }
        // PostgreSQL reports success for the commit of a failed transaction, and rolls it back.
        if self.state.failed {
            self.run(DB::PROBE).await?;
        }
        self.state.progress = Progress::Running;
        self.meter.start();
        let result = Manages::<DB>::commit(&mut self.connection).await;
        if let Err(error) = self.complete(result).await {
            if depth == 1 && DB::FAILED_COMMIT_ENDS && !self.state.broken {
                // A failure here marks the session as broken. The caller needs the first error.
                let _ = self.forget_ended().await;
            }
            return Err(error);
        }
        self.finish(depth).await
    }

    /// Lets the driver count down after the server ended the transaction. The driver can do that
    /// with a `ROLLBACK` only, which gets an empty transaction: without one the server logs a
    /// warning.
    async fn forget_ended(&mut self) -> Result<(), Error> {
        self.run("BEGIN").await?;
        self.roll_back_now(1).await
    }

    /// Rolls back the transaction at `depth`.
    pub(crate) async fn roll_back(&mut self, depth: usize) -> Result<(), Error> {
        watched!(self, self.roll_back_now(depth))
    }

    async fn roll_back_now(&mut self, depth: usize) -> Result<(), Error> {
        self.make_ready().await?;
        if self.depth() != depth {
            return Err(lost("the transaction ended before its rollback"));
        }
        self.state.progress = Progress::Running;
        self.meter.start();
        let result = Manages::<DB>::rollback(&mut self.connection).await;
        self.state.context.transaction_ended();
        self.complete(result).await?;
        self.state.failed = false;
        self.finish(depth).await
    }

    async fn finish(&mut self, depth: usize) -> Result<(), Error> {
        self.state.context.transaction_ended();
        self.state.open = depth - 1;
        if depth > self.state.floor + 1 {
            return Ok(());
        }
        self.state.given_up = false;
        let afterwards = self.state.afterwards.take();
        let done = match afterwards {
            Some(sql) => self.run(sql).await,
            None => Ok(()),
        };
        self.right = None;
        done
    }

    /// Records that the transaction at `depth` was dropped. If the session goes back to its pool,
    /// the cleaning rolls it back. If the session `stays` in its scope, the rollback is queued
    /// before the next statement.
    pub(crate) fn abandon(&mut self, depth: usize, stays: bool) {
        let over = self.depth() < depth && self.state.progress != Progress::Running;
        if !stays || over {
            return;
        }
        self.state.open = depth - 1;
        self.state.context.transaction_ended();
        Manages::<DB>::start_rollback(&mut self.connection);
        self.state.failed = true;
        if self.state.progress == Progress::Done {
            self.state.progress = Progress::BetweenRows;
        }
    }
}
