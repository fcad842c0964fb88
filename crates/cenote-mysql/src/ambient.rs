//! The ambient transaction: every statement of the pool in its future is part of it.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cenote::scope::Scope;
use cenote::status::UNKNOWN_SITE;

use crate::error::Error;
use crate::pool::{Lease, Pool};
use crate::session::Status;
use crate::transaction::TransactionOptions;

impl Pool {
    /// Runs `work` in a transaction, which is committed after `Ok`, and rolled back after an error,
    /// a panic or a drop.
    ///
    /// Every statement and every lease of this pool in `work`, and in the functions that it calls,
    /// is part of the transaction. A transaction inside it is a savepoint. Two statements at the
    /// same time wait for each other. A spawned task is *not* part of the transaction: pass it
    /// [`Scope::current`], and [`run`](Scope::run) its work in that scope.
    ///
    /// ```no_run
    /// # async fn f(pool: cenote_mysql::Pool) -> Result<(), cenote_mysql::Error> {
    /// pool.transaction(async || {
    ///     pool.exec_drop("UPDATE account SET cents = cents - 5 WHERE id = ?", (1,)).await?;
    ///     pool.exec_drop("UPDATE account SET cents = cents + 5 WHERE id = ?", (2,)).await?;
    ///     Ok(())
    /// })
    /// .await
    /// # }
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
        self.transaction_at(Location::caller(), TransactionOptions::new(), work)
    }

    /// As [`transaction`](Pool::transaction), with options.
    ///
    /// # Cancel safety
    /// As [`transaction`](Pool::transaction).
    #[track_caller]
    pub fn transaction_with<F, Fut, T, E>(
        &self,
        options: TransactionOptions,
        work: F,
    ) -> impl Future<Output = Result<T, E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        self.transaction_at(Location::caller(), options, work)
    }

    async fn transaction_at<F, Fut, T, E>(
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
        let lease = self.lease_at(site).await?;
        let mut open = Open::begin(self, lease, options).await?;
        let outcome = open.scope.run(async { work().await }).await;
        let ended = open.end(outcome.is_ok()).await;
        let value = outcome?;
        ended?;
        Ok(value)
    }

    /// Returns whether the caller is in a transaction of this pool. The server is not asked. A
    /// transaction that SQL text began in a [scope](cenote::scope()) counts, too.
    pub fn in_transaction(&self) -> bool {
        let Some(scope) = Scope::current() else {
            return false;
        };
        match scope.peek(self) {
            Some(mut bound) => bound.depth > 0 || bound.status() == Status::Inside,
            // It is in use, and stays in the scope because of a transaction.
            None => scope.is_pinned(self),
        }
    }
}

/// A transaction whose connection rests in a scope. If it is dropped before it has ended, it is
/// rolled back.
struct Open<'a> {
    pool: &'a Pool,
    scope: Scope,
    doomed: Arc<AtomicBool>,
    depth: usize,
    over: bool,
}

impl<'a> Open<'a> {
    async fn begin(
        pool: &'a Pool,
        mut lease: Lease,
        options: TransactionOptions,
    ) -> Result<Self, Error> {
        let depth = lease.begin(options).await?;
        let open = Self {
            pool,
            scope: Scope::nested(),
            doomed: Arc::clone(&lease.doomed),
            depth,
            over: false,
        };
        match open.scope.adopt(pool, lease) {
            Ok(()) => Ok(open),
            // The lease goes back with an open transaction, and is cleaned.
            Err(_) => Err(Error::lost("the scope of this transaction has ended")),
        }
    }

    /// Waits until the connection is not in use, and commits or rolls back.
    async fn end(&mut self, commit: bool) -> Result<(), Error> {
        let binding = self.pool.lease_at(UNKNOWN_SITE);
        let mut lease = self.scope.run(binding).await?;
        match commit {
            true => lease.commit(self.depth).await?,
            false => lease.roll_back(self.depth).await?,
        }
        self.over = true;
        Ok(())
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.over {
            match self.scope.peek(self.pool) {
                Some(mut bound) => bound.abandon(self.depth),
                // Another task uses the connection. The transaction around must not go on.
                None => self.doomed.store(true, Ordering::Release),
            }
        }
        self.scope.end();
    }
}
