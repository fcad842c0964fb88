//! A transaction that SeaORM can hold. Its nested transactions share the connection, and each can
//! be moved to another task.

use std::fmt;
use std::future::poll_fn;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cenote::scope::BindError;
use sea_orm::{DbBackend, DbErr, ExecResult, QueryResult, Statement};
use sqlx::Error;
use sqlx_core::ext::async_stream::TryAsyncStream;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use super::{Answer, OrmDialect, Rows, Runner};
use super::{error, execute, execute_text, query, query_all, query_one, rows};
use crate::error::{from_bind, lost};
use crate::transaction::{Transaction, TransactionOptions};

/// An open transaction of SeaORM: what `TransactionTrait::begin(&db)` returns, and what
/// `TransactionTrait::transaction(&db, ..)` passes to its callback. It is rolled back if it is
/// dropped without a commit.
///
/// A transaction that is begun on it is a savepoint. Statements on the outer one meanwhile are part
/// of the savepoint. Nested transactions end before the outer one: a commit in another order is an
/// error, and the whole transaction is rolled back.
///
/// ```
/// # #[cfg(all(feature = "sea-orm", feature = "sqlite"))]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_sqlx::Db;
/// use sea_orm::{ConnectionTrait, TransactionTrait};
///
/// let db = Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
/// // `db.begin()` is the method of the handle, which knows nothing of SeaORM.
/// let outer = TransactionTrait::begin(&db).await?;
/// outer.execute_unprepared("CREATE TABLE cakes (name TEXT)").await?;
/// let inner = outer.begin().await?;
/// inner.execute_unprepared("INSERT INTO cakes VALUES ('cheese')").await?;
/// inner.rollback().await?;
/// outer.execute_unprepared("INSERT INTO cakes VALUES ('apple')").await?;
/// outer.commit().await?;
///
/// let cakes: Vec<String> = sqlx::query_scalar("SELECT name FROM cakes").fetch_all(&db).await?;
/// assert_eq!(cakes, ["apple"]);
/// # Ok(()) }
/// # #[cfg(not(all(feature = "sea-orm", feature = "sqlite")))] fn main() {}
/// ```
#[must_use = "a transaction that is not committed is rolled back"]
pub struct OrmTransaction(Box<dyn Nest>);

impl OrmTransaction {
    /// Takes over the outermost transaction.
    pub(super) fn new<DB: OrmDialect>(
        mut transaction: Transaction<'static, DB>,
        patience: Patience,
    ) -> Self {
        let session = transaction.lease().session();
        Self(Box::new(Nested {
            depth: session.state.open,
            doom: session.state.doomed.clone(),
            root: Arc::new(Mutex::new(Some(Outermost(transaction)))),
            outermost: true,
            over: false,
            patience,
        }))
    }

    pub(super) fn runner(&self) -> &dyn Runner {
        &*self.0
    }

    /// Commits the transaction. The outermost one gives the connection back.
    ///
    /// # Cancel safety
    /// If this future is dropped, the transaction may be committed or rolled back.
    pub async fn commit(self) -> Result<(), DbErr> {
        self.0.end(true).await
    }

    /// Rolls the transaction back. The outermost one gives the connection back.
    ///
    /// # Cancel safety
    /// If this future is dropped, the transaction is rolled back before the connection is used
    /// again.
    pub async fn rollback(self) -> Result<(), DbErr> {
        self.0.end(false).await
    }
}

impl fmt::Debug for OrmTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrmTransaction")
            .field("database", &self.0.backend())
            .finish_non_exhaustive()
    }
}

trait Nest: Runner {
    fn end(self: Box<Self>, commit: bool) -> Answer<'static, ()>;
}

/// Has no lifetime in its type, because the compiler cannot prove otherwise that a future with a
/// lock of it is `Send`.
struct Outermost<DB: OrmDialect>(Transaction<'static, DB>);

type Held<'a, DB> = MappedMutexGuard<'a, Outermost<DB>>;

/// How long a statement waits for another one of its transaction, or for a row stream there.
#[derive(Clone)]
pub(super) struct Patience {
    pub(super) pool: Arc<str>,
    pub(super) limit: Option<Duration>,
    /// The line of code that began the transaction.
    pub(super) site: &'static Location<'static>,
}

impl Patience {
    async fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> Result<MutexGuard<'a, T>, Error> {
        if let Ok(held) = mutex.try_lock() {
            return Ok(held);
        }
        let Some(waited) = self.limit else {
            return Ok(mutex.lock().await);
        };
        let locked = tokio::time::timeout(waited, mutex.lock()).await;
        locked.map_err(|_| {
            let pool = Arc::clone(&self.pool);
            let site = self.site;
            from_bind(BindError::InUse { pool, waited, site })
        })
    }
}

/// A transaction at one depth.
struct Nested<DB: OrmDialect> {
    /// The transaction that all share, until it has ended.
    root: Arc<Mutex<Option<Outermost<DB>>>>,
    depth: usize,
    outermost: bool,
    /// Makes the whole transaction fail.
    doom: Arc<AtomicBool>,
    over: bool,
    patience: Patience,
}

impl<DB: OrmDialect> Nested<DB> {
    /// Waits for the connection.
    async fn lock(&self) -> Result<Held<'_, DB>, Error> {
        let root = self.patience.lock(&self.root).await?;
        MutexGuard::try_map(root, Option::as_mut).map_err(|_| ended())
    }

    /// As [`lock`](Nested::lock), with the error of a statement.
    async fn lock_for(&self, kind: fn(Error) -> DbErr) -> Result<Held<'_, DB>, DbErr> {
        self.lock().await.map_err(kind)
    }

    /// Begins a savepoint. The mode of SQLite is for outermost transactions, as in SeaORM.
    async fn begin_inside(&self, mut options: TransactionOptions) -> Result<Self, Error> {
        options.text = None;
        let mut held = self.lock().await?;
        let depth = held.0.lease().session().begin(&options).await?;
        Ok(Self {
            root: Arc::clone(&self.root),
            depth,
            outermost: false,
            doom: Arc::clone(&self.doom),
            over: false,
            patience: self.patience.clone(),
        })
    }

    async fn end_now(&mut self, commit: bool) -> Result<(), Error> {
        let mut root = self.patience.lock(&self.root).await?;
        let held = root.as_mut().ok_or_else(ended)?;
        let session = held.0.lease().session();
        if session.state.open != self.depth {
            return Err(lost("a transaction inside this one has not ended"));
        }
        if !self.outermost {
            match commit {
                true => session.commit(self.depth).await?,
                false => session.roll_back(self.depth).await?,
            }
        } else if let Some(held) = root.take() {
            match commit {
                true => held.0.commit().await?,
                false => held.0.rollback().await?,
            }
        }
        drop(root);
        self.over = true;
        Ok(())
    }
}

fn ended() -> Error {
    lost("the outer transaction has ended")
}

impl<DB: OrmDialect> Nest for Nested<DB> {
    fn end(mut self: Box<Self>, commit: bool) -> Answer<'static, ()> {
        Box::pin(async move { self.end_now(commit).await.map_err(error::of_query) })
    }
}

impl<DB: OrmDialect> Runner for Nested<DB> {
    fn backend(&self) -> DbBackend {
        DB::BACKEND
    }

    fn execute(&self, statement: Statement) -> Answer<'_, ExecResult> {
        Box::pin(async move {
            let mut held = self.lock_for(error::of_write).await?;
            execute(&mut held.0, statement).await
        })
    }

    fn execute_text<'a>(&'a self, sql: &str) -> Answer<'a, ExecResult> {
        let sql = sql.to_owned();
        Box::pin(async move {
            let mut held = self.lock_for(error::of_write).await?;
            execute_text(&mut held.0, sql).await
        })
    }

    fn query_one(&self, statement: Statement) -> Answer<'_, Option<QueryResult>> {
        Box::pin(async move {
            let mut held = self.lock_for(error::of_query).await?;
            query_one(&mut held.0, statement).await
        })
    }

    fn query_all(&self, statement: Statement) -> Answer<'_, Vec<QueryResult>> {
        Box::pin(async move {
            let mut held = self.lock_for(error::of_query).await?;
            query_all(&mut held.0, statement).await
        })
    }

    fn stream(&self, statement: Statement) -> Answer<'_, Rows<'_>> {
        let query = query::<DB>(statement);
        let found = TryAsyncStream::new(move |rows| async move {
            let mut held = self.lock().await?;
            let mut found = query.fetch(&mut held.0);
            while let Some(row) = poll_fn(|context| found.as_mut().poll_next(context)).await {
                rows.r#yield(row?).await;
            }
            Ok(())
        });
        Box::pin(rows::begin::<DB>(Box::pin(found)))
    }

    fn begin(
        &self,
        _: &'static Location<'static>,
        options: TransactionOptions,
    ) -> Answer<'_, OrmTransaction> {
        Box::pin(async move {
            let begun = self.begin_inside(options).await;
            begun
                .map(|nested| OrmTransaction(Box::new(nested)))
                .map_err(error::of_query)
        })
    }
}

/// Rolls back. If a statement of another handle is under way, or a nested transaction is open, the
/// connection cannot be rolled back to this depth now, and the whole transaction must not go on.
impl<DB: OrmDialect> Drop for Nested<DB> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let Ok(mut root) = self.root.try_lock() else {
            return self.doom.store(true, Ordering::Release);
        };
        let Some(held) = root.as_mut() else {
            return;
        };
        let session = held.0.lease().session();
        if session.state.open != self.depth {
            self.doom.store(true, Ordering::Release);
        } else if !self.outermost {
            session.abandon(self.depth, true);
        }
        if self.outermost {
            *root = None;
        }
    }
}
