//! The ambient transaction: every `&db` in its future is part of it, without being passed along.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cenote::Scope;
use sqlx::Error;

use crate::db::Db;
use crate::dialect::Dialect;
use crate::error::from_bind;
use crate::lease::Lease;
use crate::transaction::TransactionOptions;

/// Runs `work` in a transaction on `lease`, in a scope of its own.
pub(crate) async fn run<DB, Fut, T, E>(
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
    let mut open = Open::new(db, lease, depth);
    let outcome = open.scope.run(async { work().await }).await;
    let closed = open.close(outcome.is_ok()).await;
    let value = outcome?;
    closed?;
    Ok(value)
}

/// A transaction that is seated in a scope. Dropped before its end, it is rolled back.
struct Open<'a, DB: Dialect> {
    db: &'a Db<DB>,
    scope: Scope,
    depth: usize,
    /// Does the connection stay with a scope around this one?
    stays: bool,
    doom: Arc<AtomicBool>,
    over: bool,
}

impl<'a, DB: Dialect> Open<'a, DB> {
    fn new(db: &'a Db<DB>, mut lease: Lease<DB>, depth: usize) -> Self {
        let stays = lease.is_pinned();
        let doom = lease.session().state.doomed.clone();
        let scope = Scope::nested();
        if let Some(bound) = lease.let_go() {
            let seated = scope.adopt(db.pool(), bound);
            debug_assert!(seated.is_ok(), "a new scope has a free seat");
        }
        Self {
            db,
            scope,
            depth,
            stays,
            doom,
            over: false,
        }
    }

    /// Commits or rolls back, once whatever still uses the connection is done.
    async fn close(&mut self, commit: bool) -> Result<(), Error> {
        let bound = self.scope.run(self.db.pool().bind()).await;
        let mut bound = bound.map_err(from_bind)?;
        let closed = if commit {
            bound.commit(self.depth).await
        } else {
            bound.roll_back(self.depth).await
        };
        // A commit that the database refused leaves the transaction open: it is rolled back on the way out.
        self.over = closed.is_ok();
        closed
    }
}

impl<DB: Dialect> Drop for Open<'_, DB> {
    fn drop(&mut self) {
        if !self.over {
            match self.scope.peek(self.db.pool()) {
                Some(mut bound) => bound.abandon(self.depth, self.stays),
                // Something that outlives the transaction holds the connection: it ends there, and what is around must not go on.
                None => self.doom.store(true, Ordering::Release),
            }
        }
        self.scope.end();
    }
}
