//! The ambient transaction: every statement of the pool in its future is part of it.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use cenote::scope::Scope;
use cenote::status::UNKNOWN_SITE;

use crate::error::Error;
use crate::meaning::Dirt;
use crate::pool::{DOOMED, Lease, Pool};
use crate::state::State;
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
    /// # async fn f(pool: cenote_postgres::Pool) -> Result<(), cenote_postgres::Error> {
    /// pool.transaction(async || {
    ///     pool.execute("update account set cents = cents - 5 where id = $1", &[&1]).await?;
    ///     pool.execute("update account set cents = cents + 5 where id = $1", &[&2]).await?;
    ///     Ok::<_, cenote_postgres::Error>(())
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
        let closed = open.close(outcome.is_ok()).await;
        let value = outcome?;
        closed?;
        Ok(value)
    }

    /// Returns whether the caller is in a transaction of this pool. The server is not asked. A
    /// transaction that SQL text began in a [scope](cenote::scope()) counts, too.
    pub fn in_transaction(&self) -> bool {
        let Some(scope) = Scope::current() else {
            return false;
        };
        match scope.peek(self) {
            Some(bound) => bound.depth > 0 || bound.state.dirt().has(Dirt::TRANSACTION),
            // It is in use, and stays in the scope because of a transaction or a changed session.
            None => scope.is_pinned(self),
        }
    }
}

/// A transaction whose connection rests in a scope. If it is dropped before it has ended, it is
/// rolled back.
struct Open<'a> {
    pool: &'a Pool,
    scope: Scope,
    state: Arc<State>,
    depth: usize,
    over: bool,
}

impl<'a> Open<'a> {
    async fn begin(
        pool: &'a Pool,
        lease: Lease,
        options: TransactionOptions,
    ) -> Result<Self, Error> {
        let mut opening = Opening {
            outer: lease.depth,
            lease: Some(lease),
        };
        let depth = opening.lease().begin(options).await?;
        let mut open = Self {
            pool,
            scope: Scope::nested(),
            state: Arc::clone(&opening.lease().state),
            depth,
            over: false,
        };
        let lease = opening.lease.take().expect(PRESENT);
        if open.scope.adopt(pool, lease).is_err() {
            // The lease goes back with an open transaction, and is cleaned.
            open.over = true;
            return Err(Error::lost("the scope of this transaction has ended"));
        }
        Ok(open)
    }

    /// Waits until the connection is not in use, and commits or rolls back.
    async fn close(&mut self, commit: bool) -> Result<(), Error> {
        let binding = self.pool.bind_at(UNKNOWN_SITE, None);
        let mut bound = self.scope.run(binding).await?;
        if bound.state.is_doomed() {
            return Err(Error::lost(DOOMED));
        }
        match commit {
            true => bound.commit(self.depth).await?,
            false => bound.roll_back(self.depth).await?,
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
                None => self.state.doom(),
            }
        }
        self.scope.end();
    }
}

/// A lease on which a transaction begins. If it is dropped midway, the transaction is rolled back.
struct Opening {
    /// The depth before.
    outer: usize,
    lease: Option<Lease>,
}

const PRESENT: &str = "the lease is present until the transaction has begun";

impl Opening {
    fn lease(&mut self) -> &mut Lease {
        self.lease.as_mut().expect(PRESENT)
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(lease) = &mut self.lease {
            lease.abandon(self.outer + 1);
        }
    }
}
