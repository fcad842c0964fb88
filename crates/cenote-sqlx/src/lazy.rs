//! A transaction that begins with its first statement, and what its scope knows of it.

use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cenote::scope::Scope;
use sqlx::Error;

use crate::ambient::Open;
use crate::db::Db;
use crate::dialect::Dialect;
use crate::lease::Lease;
use crate::template::Template;
use crate::transaction::TransactionOptions;

/// A transaction that begins with the first statement in it, made by
/// [`Db::lazy_transaction`](Db::lazy_transaction). Until then it holds no connection.
#[must_use = "a transaction does nothing until it is run"]
pub struct LazyTransaction<DB: Dialect> {
    db: Db<DB>,
    options: TransactionOptions,
    on_demand: bool,
}

impl<DB: Dialect> Db<DB> {
    /// Makes a transaction that begins with the first statement in it, so that work which first
    /// waits for something else, such as an upload, holds no connection meanwhile.
    ///
    /// In all else it is a [`transaction`](Db::transaction). If it cannot begin, the statement
    /// fails, and the next one tries again. Without a statement nothing is committed.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
    /// use cenote_sqlx::TransactionOptions;
    ///
    /// sqlx::query("CREATE TABLE t (a INTEGER)").execute(&db).await?;
    /// let lazy = db.lazy_transaction(TransactionOptions::new());
    /// let failed: Result<(), sqlx::Error> = lazy.run(async || {
    ///     assert!(db.in_transaction() && db.pool().status().in_use == 0);
    ///     sqlx::query("INSERT INTO t VALUES (1)").execute(&db).await?;
    ///     assert_eq!(db.pool().status().in_use, 1);
    ///     Err(sqlx::Error::RowNotFound)
    /// }).await;
    /// assert!(failed.is_err());
    /// let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM t").fetch_one(&db).await?;
    /// assert_eq!(rows, 0);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn lazy_transaction(&self, options: TransactionOptions) -> LazyTransaction<DB> {
        LazyTransaction {
            db: self.clone(),
            options,
            on_demand: false,
        }
    }

    /// Makes the statements from here on part of the caller's
    /// [`on_demand`](LazyTransaction::on_demand) transaction. Returns whether the caller is in a
    /// lazy transaction of this database.
    pub fn demand_transaction(&self) -> bool {
        let found = Ambient::here(self);
        found.is_some_and(|(ambient, cut)| !cut && ambient.demand())
    }
}

impl<DB: Dialect> LazyTransaction<DB> {
    /// Leaves the statements outside of the transaction until
    /// [`demand_transaction`](Db::demand_transaction) is called.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
    /// let lazy = db.lazy_transaction(Default::default()).on_demand();
    /// lazy.run(async || {
    ///     assert!(!db.in_transaction());
    ///     assert!(db.demand_transaction());
    ///     assert!(db.in_transaction());
    ///     Ok::<_, sqlx::Error>(())
    /// }).await?;
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn on_demand(mut self) -> Self {
        self.on_demand = true;
        self
    }

    /// Runs `work`. If the transaction has begun, it is committed after `Ok`, and rolled back after
    /// an error, a panic or a drop.
    ///
    /// # Cancel safety
    /// As [`transaction`](Db::transaction).
    pub async fn run<F, Fut, T, E>(self, work: F) -> Result<T, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let scope = Scope::nested();
        let stage = match self.on_demand {
            true => Stage::Off,
            false => Stage::Waiting,
        };
        let stage = stage(self.db.clone(), scope.clone());
        let ends = Ends(Ambient::attach(&self.db, &scope, self.options, stage));
        let outcome = scope.run(async { work().await }).await;
        let closed = match ends.0.end() {
            Stage::Begun(mut open) => open.close(outcome.is_ok()).await,
            _ => Ok(()),
        };
        scope.end();
        let value = outcome?;
        closed?;
        Ok(value)
    }
}

impl<DB: Dialect> fmt::Debug for LazyTransaction<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyTransaction")
            .field("db", &self.db)
            .field("options", &self.options)
            .field("on_demand", &self.on_demand)
            .finish()
    }
}

/// The transaction of a scope, attached to it.
pub(crate) struct Ambient<DB: Dialect> {
    /// Tells two databases of one kind apart.
    template: Weak<Template<DB>>,
    options: TransactionOptions,
    /// That of the scope around it, of any database of this kind.
    outer: Option<Arc<Self>>,
    stage: Mutex<Stage<DB>>,
    /// Held while the transaction begins, so that it begins once.
    turn: tokio::sync::Mutex<()>,
}

pub(crate) enum Stage<DB: Dialect> {
    /// It does not begin before it is demanded.
    Off(Db<DB>, Scope),
    /// It begins with the next statement.
    Waiting(Db<DB>, Scope),
    Begun(Open<DB>),
    /// It began with its work.
    Eager,
    Over,
}

/// Ends the transaction if its work is dropped.
pub(crate) struct Ends<DB: Dialect>(pub(crate) Arc<Ambient<DB>>);

impl<DB: Dialect> Drop for Ends<DB> {
    fn drop(&mut self) {
        // A transaction that has begun is rolled back by its own drop.
        if let Stage::Off(_, scope) | Stage::Waiting(_, scope) = self.0.end() {
            scope.end();
        }
    }
}

/// A statement's place in the transaction of its scope, if there is one.
pub(crate) struct Joined<DB: Dialect>(Option<Arc<Ambient<DB>>>);

impl<DB: Dialect> Joined<DB> {
    /// Returns the lease, unless the transaction ended while the statement waited for it. Then the
    /// lease is not that of the transaction.
    pub(crate) fn confirm(self, lease: Lease<DB>) -> Result<Lease<DB>, Error> {
        match self.0 {
            Some(ambient) if ambient.is_over() => ambient.refuse_late().map(|()| lease),
            _ => Ok(lease),
        }
    }
}

impl<DB: Dialect> Db<DB> {
    /// Begins the transaction of the caller's scope, if it has not begun. Fails if it is over and
    /// refuses late statements.
    pub(crate) async fn join(&self, site: &'static Location<'static>) -> Result<Joined<DB>, Error> {
        let Some((ambient, cut)) = Ambient::here(self) else {
            return Ok(Joined(None));
        };
        if cut || ambient.is_over() {
            return ambient.refuse_late().map(|()| Joined(None));
        }
        if ambient.is_waiting() {
            Box::pin(ambient.begin(site)).await?;
        }
        Ok(Joined(Some(ambient)))
    }
}

impl<DB: Dialect> Ambient<DB> {
    pub(crate) fn attach(
        db: &Db<DB>,
        scope: &Scope,
        options: TransactionOptions,
        stage: Stage<DB>,
    ) -> Arc<Self> {
        let ambient = Arc::new(Self {
            template: Arc::downgrade(&db.pool().manager().template),
            options,
            outer: scope.attached(),
            stage: Mutex::new(stage),
            turn: tokio::sync::Mutex::default(),
        });
        scope.attach(Arc::clone(&ambient));
        ambient
    }

    /// Returns the transaction of `db` in the caller's scope, and whether a scope in between has
    /// ended. Then the statements of the caller are not part of it.
    pub(crate) fn here(db: &Db<DB>) -> Option<(Arc<Self>, bool)> {
        let mut ambient = Scope::current()?.attached::<Self>()?;
        let mut cut = false;
        while !ambient.is_of(db) {
            cut |= ambient.is_over();
            ambient = ambient.outer.clone()?;
        }
        Some((ambient, cut))
    }

    fn is_of(&self, db: &Db<DB>) -> bool {
        self.template.as_ptr() == Arc::as_ptr(&db.pool().manager().template)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        matches!(*self.lock(), Stage::Waiting(..))
    }

    fn is_over(&self) -> bool {
        matches!(*self.lock(), Stage::Over)
    }

    fn demand(&self) -> bool {
        let mut stage = self.lock();
        *stage = match mem::replace(&mut *stage, Stage::Over) {
            Stage::Off(db, scope) => Stage::Waiting(db, scope),
            other => other,
        };
        !matches!(*stage, Stage::Over)
    }

    /// Records that the transaction is over, and returns how far it was.
    fn end(&self) -> Stage<DB> {
        mem::replace(&mut *self.lock(), Stage::Over)
    }

    fn refuse_late(&self) -> Result<(), Error> {
        match self.options.refuse_late {
            true => Err(Error::InvalidArgument(String::from(
                "the transaction of this scope is over, and this statement would be committed by \
                 itself: await it before the end of the transaction, or run it outside of the scope",
            ))),
            false => Ok(()),
        }
    }

    async fn begin(&self, site: &'static Location<'static>) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        let (db, scope) = match &*self.lock() {
            Stage::Waiting(db, scope) => (db.clone(), scope.clone()),
            Stage::Over => return self.refuse_late(),
            Stage::Off(..) | Stage::Begun(_) | Stage::Eager => return Ok(()),
        };
        if let Some(outer) = self.around(&db).filter(|outer| outer.is_waiting()) {
            Box::pin(outer.begin(site)).await?;
        }
        let began = scope.run(async {
            let mut lease = db.acquire_for(site, self.options).await?;
            let depth = lease.session().begin(&self.options).await?;
            Ok::<_, Error>((lease, depth))
        });
        let (lease, depth) = began.await?;
        let open = Open::new(&db, scope, lease, depth)?;
        let mut stage = self.lock();
        if matches!(*stage, Stage::Over) {
            drop(stage);
            drop(open); // which rolls back
            return self.refuse_late();
        }
        *stage = Stage::Begun(open);
        Ok(())
    }

    /// Returns the next transaction of `db` around this one.
    fn around(&self, db: &Db<DB>) -> Option<Arc<Self>> {
        let mut outer = self.outer.clone()?;
        while !outer.is_of(db) {
            outer = outer.outer.clone()?;
        }
        Some(outer)
    }

    fn lock(&self) -> MutexGuard<'_, Stage<DB>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
