//! The ambient transaction: every `&db` in its future is part of it.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cenote::Pool;
use cenote::scope::Scope;
use cenote::status::UNKNOWN_SITE;
use sqlx::Error;

use crate::db::Db;
use crate::dialect::Dialect;
use crate::error::{from_bind, lost};
use crate::lazy::{Ambient, Ends, Stage};
use crate::lease::Lease;
use crate::manager::Sql;
use crate::transaction::TransactionOptions;

impl<DB: Dialect> Db<DB> {
    /// Runs `work` in a transaction, which is committed after `Ok`, and rolled back after an error,
    /// a panic or a drop.
    ///
    /// Every `&db` of this database in `work`, and in the functions that it calls, is part of the
    /// transaction. A transaction inside it is a savepoint. Two statements at the same time wait
    /// for each other. A spawned task is *not* part of the transaction: pass it [`Scope::current`],
    /// and [`run`](Scope::run) its work in that scope.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_sqlx::Db;
    ///
    /// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
    /// sqlx::query("CREATE TABLE t (a INTEGER)").execute(&db).await?;
    /// let failed: Result<(), sqlx::Error> = db.transaction(async || {
    ///     sqlx::query("INSERT INTO t VALUES (1)").execute(&db).await?;
    ///     Err(sqlx::Error::RowNotFound)
    /// }).await;
    /// assert!(failed.is_err());
    /// let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM t").fetch_one(&db).await?;
    /// assert_eq!(rows, 0);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future drops `work` and rolls back. If it is dropped during the commit, the
    /// transaction may be committed or rolled back.
    #[track_caller]
    pub fn transaction<F, Fut, T, E>(&self, work: F) -> impl Future<Output = Result<T, E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        self.transaction_with(TransactionOptions::new(), work)
    }

    /// Runs `work` in a transaction with options, or with a text like `BEGIN READ ONLY,
    /// DEFERRABLE`. All else is as in [`transaction`](Db::transaction).
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// use cenote_sqlx::TransactionOptions;
    ///
    /// let options = TransactionOptions::new().read_only();
    /// let read = async || sqlx::query_scalar::<_, i64>("SELECT 1").fetch_one(&db).await;
    /// assert_eq!(db.transaction_with(options, read).await?, 1);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// As [`transaction`](Db::transaction).
    #[track_caller]
    pub fn transaction_with<F, Fut, T, E>(
        &self,
        options: impl Into<TransactionOptions>,
        work: F,
    ) -> impl Future<Output = Result<T, E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        self.transaction_at(Location::caller(), options.into(), work)
    }

    /// As [`transaction_with`](Db::transaction_with), for a caller at `site`.
    pub(crate) async fn transaction_at<F, Fut, T, E>(
        &self,
        site: &'static Location<'static>,
        options: TransactionOptions,
        work: F,
    ) -> Result<T, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let joined = self.join(site).await?;
        let lease = joined.confirm(self.acquire_for(site, options).await?)?;
        run(self, lease, &options, work).await
    }

    /// Returns an error unless the caller is in a transaction of this database, for functions that
    /// must not be committed by themselves.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// assert!(db.require_transaction().is_err());
    /// db.transaction(async || db.require_transaction()).await?;
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn require_transaction(&self) -> Result<(), Error> {
        match self.in_transaction() {
            true => Ok(()),
            false => Err(Error::InvalidArgument(format!(
                "this code needs a transaction of the database `{}`, and runs in none: call it in \
                 `Db::transaction`, in a `#[transactional]` function or in a route with a \
                 `TransactionalLayer`, and in the same task",
                self.pool().name()
            ))),
        }
    }

    /// Returns whether the caller is in a transaction of this database. The server is not asked. A
    /// [lazy](Db::lazy_transaction) transaction counts before its first statement, too.
    ///
    /// A transaction that SQL text began (`BEGIN` through `&db`, in a scope) counts too. Not
    /// noticed are transactions of functions on the server and of `&mut *lease`, and transactions
    /// that the server ended by itself, as MySQL does at each `CREATE` or `ALTER`.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// assert!(!db.in_transaction());
    /// let inside = db.transaction(async || Ok::<_, sqlx::Error>(db.in_transaction())).await?;
    /// assert!(inside);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn in_transaction(&self) -> bool {
        if Ambient::here(self).is_some_and(|(ambient, cut)| !cut && ambient.is_waiting()) {
            return true;
        }
        let Some(scope) = Scope::current() else {
            return false;
        };
        let pool = self.turn_at_once(false).pool;
        match scope.peek(pool) {
            Some(bound) => bound.is_in_transaction(),
            // The connection is in use and cannot be asked. It is pinned because of a transaction
            // or of a changed session.
            None => scope.is_pinned(pool),
        }
    }

    /// Returns the connection that is pinned in this scope, without acquiring one. Returns `None`
    /// if there is none, or if it is in use.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// assert!(db.peek().is_none());
    /// let inside = db.transaction(async || Ok::<_, sqlx::Error>(db.peek().is_some())).await?;
    /// assert!(inside);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    #[track_caller]
    pub fn peek(&self) -> Option<Lease<DB>> {
        let turn = self.turn_at_once(false);
        let bound = Scope::current()?.peek(turn.pool)?;
        Some(Lease::new(bound, turn.apart))
    }
}

/// Runs `work` in a transaction on `lease`, in a new scope.
async fn run<DB, Fut, T, E>(
    db: &Db<DB>,
    mut lease: Lease<DB>,
    options: &TransactionOptions,
    work: impl FnOnce() -> Fut,
) -> Result<T, E>
where
    DB: Dialect,
    Fut: Future<Output = Result<T, E>>,
    E: From<Error>,
{
    let depth = lease.session().begin(options).await?;
    let mut open = Open::new(db, Scope::nested(), lease, depth)?;
    let late = options.refuse_late.then(|| {
        let ambient = Ambient::attach(db, &open.scope, *options, Stage::Eager);
        Ends(ambient)
    });
    let outcome = open.scope.run(async { work().await }).await;
    drop(late);
    let closed = open.close(outcome.is_ok()).await;
    let value = outcome?;
    closed?;
    Ok(value)
}

/// A transaction whose connection is pinned in a scope. If it is dropped before it has ended, it is
/// rolled back.
pub(crate) struct Open<DB: Dialect> {
    pool: Pool<Sql<DB>>,
    scope: Scope,
    depth: usize,
    /// Whether the connection is pinned in an outer scope, and so stays there.
    stays: bool,
    doom: Arc<AtomicBool>,
    over: bool,
}

impl<DB: Dialect> Open<DB> {
    /// Fails if `scope` has ended.
    pub(crate) fn new(
        db: &Db<DB>,
        scope: Scope,
        mut lease: Lease<DB>,
        depth: usize,
    ) -> Result<Self, Error> {
        let stays = lease.is_pinned();
        let doom = lease.session().state.doomed.clone();
        let pool = lease.pool_of(db).clone();
        let bound = lease.let_go();
        let seated = bound.map_or(Ok(()), |bound| scope.adopt(&pool, bound));
        if seated.is_err() {
            return Err(lost("the scope of this transaction has ended"));
        }
        Ok(Self {
            pool,
            scope,
            depth,
            stays,
            doom,
            over: false,
        })
    }

    /// Waits until the connection is not in use, and commits or rolls back.
    pub(crate) async fn close(&mut self, commit: bool) -> Result<(), Error> {
        let binding = self.pool.bind_at(UNKNOWN_SITE, None);
        let bound = self.scope.run(binding).await;
        let mut bound = bound.map_err(from_bind)?;
        let closed = if commit {
            bound.commit(self.depth).await
        } else {
            bound.roll_back(self.depth).await
        };
        // A transaction whose commit failed may still be open. `drop` rolls it back.
        self.over = closed.is_ok();
        closed
    }
}

impl<DB: Dialect> Drop for Open<DB> {
    fn drop(&mut self) {
        if !self.over {
            match self.scope.peek(&self.pool) {
                Some(mut bound) => bound.abandon(self.depth, self.stays),
                // A row stream that outlives the transaction holds the connection, so that it
                // cannot be rolled back now. The outer transaction must not go on.
                None => self.doom.store(true, Ordering::Release),
            }
        }
        self.scope.end();
    }
}
