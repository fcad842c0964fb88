//! A transaction that is passed along as an argument. The ambient one is in `ambient.rs`.

use std::fmt;
use std::ops::Deref;

use tokio_postgres::{Error, IsolationLevel};

use crate::meaning::Meaning;
use crate::session::Session;

/// How a transaction begins. A nested transaction is a savepoint, which has no options.
///
/// ```
/// use cenote_postgres::TransactionOptions;
/// use cenote_postgres::tokio_postgres::IsolationLevel;
///
/// let report = TransactionOptions::new().isolation(IsolationLevel::Serializable).read_only();
/// assert!(format!("{report:?}").contains("Serializable"));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactionOptions {
    isolation: Option<IsolationLevel>,
    read_only: bool,
    deferrable: bool,
}

impl TransactionOptions {
    /// The defaults of the database.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the isolation level.
    pub fn isolation(mut self, isolation: IsolationLevel) -> Self {
        self.isolation = Some(isolation);
        self
    }

    /// Refuses statements that write.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Lets a serializable transaction that only reads wait for a moment in which it cannot fail.
    pub fn deferrable(mut self) -> Self {
        self.deferrable = true;
        self
    }

    fn sql(self) -> String {
        let mut sql = String::from("BEGIN");
        match self.isolation {
            None => {}
            Some(IsolationLevel::ReadUncommitted) => sql += " ISOLATION LEVEL READ UNCOMMITTED",
            Some(IsolationLevel::ReadCommitted) => sql += " ISOLATION LEVEL READ COMMITTED",
            Some(IsolationLevel::RepeatableRead) => sql += " ISOLATION LEVEL REPEATABLE READ",
            Some(_) => sql += " ISOLATION LEVEL SERIALIZABLE",
        }
        if self.read_only {
            sql += " READ ONLY";
        }
        if self.deferrable {
            sql += " DEFERRABLE";
        }
        sql
    }
}

/// A transaction. It dereferences to its [`Session`], whose statements are part of it. Dropped
/// before its [`commit`](Transaction::commit), it is rolled back.
///
/// A commit fails if a statement of the transaction has failed. The driver's own transaction is
/// then rolled back, and its `commit` returns `Ok`.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct Transaction<'a> {
    session: &'a mut Session,
    depth: usize,
}

impl Session {
    /// Begins a transaction, or a savepoint inside a transaction of this session.
    ///
    /// ```no_run
    /// # async fn f(pool: cenote_postgres::Pool) -> Result<(), cenote_postgres::Error> {
    /// let mut lease = pool.acquire().await?;
    /// let transaction = lease.transaction().await?;
    /// transaction.execute("update t set a = 1", &[]).await?;
    /// transaction.commit().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// If this future is dropped, a transaction that may have begun is rolled back.
    pub async fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        self.transaction_with(TransactionOptions::new()).await
    }

    /// As [`transaction`](Session::transaction), with options.
    ///
    /// # Cancel safety
    /// As [`transaction`](Session::transaction).
    pub async fn transaction_with(
        &mut self,
        options: TransactionOptions,
    ) -> Result<Transaction<'_>, Error> {
        let depth = self.depth + 1;
        let transaction = Transaction {
            session: self,
            depth,
        };
        transaction.session.begin(options).await?;
        Ok(transaction)
    }

    /// Begins a transaction or a savepoint, and returns its depth. A future that is dropped midway
    /// leaves the depth as if it had begun, and its caller abandons it.
    pub(crate) async fn begin(&mut self, options: TransactionOptions) -> Result<usize, Error> {
        self.quiet().await;
        self.depth += 1;
        let depth = self.depth;
        let (sql, meaning) = match depth {
            1 => (options.sql(), Meaning::OPENS),
            _ => (format!("SAVEPOINT cenote_{depth}"), Meaning::IN_TRANSACTION),
        };
        if depth == 1 {
            // Failures before the transaction do not concern it.
            self.state.transaction_ended();
        }
        let begun = self.run(meaning, self.client.batch_execute(&sql)).await;
        if let Err(error) = begun {
            self.depth = depth - 1;
            return Err(error);
        }
        Ok(depth)
    }

    /// Commits the transaction at `depth`. If that fails, the transaction is rolled back.
    pub(crate) async fn commit(&mut self, depth: usize) -> Result<(), Error> {
        self.quiet().await;
        if self.state.is_doubtful() {
            // The server takes `COMMIT` in a failed transaction as `ROLLBACK`, without an error.
            let probe = self.client.batch_execute("SELECT 1");
            if let Err(error) = self.run(Meaning::HARMLESS, probe).await {
                self.abandon(depth);
                return Err(error);
            }
        }
        let (sql, meaning) = match depth {
            1 => (String::from("COMMIT"), Meaning::ENDS),
            _ => (format!("RELEASE cenote_{depth}"), Meaning::IN_TRANSACTION),
        };
        let committed = self.run(meaning, self.client.batch_execute(&sql)).await;
        match &committed {
            Err(error) if depth > 1 || error.as_db_error().is_none() => self.abandon(depth),
            // A commit that the server refuses ends the transaction, too.
            _ => {
                self.depth = depth - 1;
                if depth == 1 {
                    self.state.transaction_ended();
                }
            }
        }
        committed
    }

    /// Rolls the transaction at `depth` back.
    pub(crate) async fn roll_back(&mut self, depth: usize) -> Result<(), Error> {
        self.quiet().await;
        let (sql, meaning) = undo(depth);
        let ended = self.run(meaning, self.client.batch_execute(&sql)).await;
        if ended.is_ok() {
            self.depth = depth - 1;
        }
        ended
    }

    /// Cancels a statement that was dropped. If that fails, the next statement waits for its end.
    async fn quiet(&self) {
        let _ = self.settle().await;
    }

    /// Rolls the transaction at `depth` back without waiting, unless it has ended. Statements that
    /// follow are run after the rollback.
    pub(crate) fn abandon(&mut self, depth: usize) {
        if self.depth < depth {
            return;
        }
        self.depth = depth - 1;
        self.queue(&undo(depth).0);
        // After a dropped statement the cleaning makes sure, because it may cancel the rollback.
        if depth == 1 && !self.state.is_interrupted() {
            self.state.transaction_ended();
        }
    }
}

fn undo(depth: usize) -> (String, Meaning) {
    match depth {
        1 => (String::from("ROLLBACK"), Meaning::ENDS),
        _ => {
            let sql = format!("ROLLBACK TO cenote_{depth}; RELEASE cenote_{depth}");
            (sql, Meaning::IN_TRANSACTION)
        }
    }
}

impl Transaction<'_> {
    /// Begins a savepoint inside of this transaction.
    ///
    /// # Cancel safety
    /// As [`Session::transaction`].
    pub async fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        self.session.transaction().await
    }

    /// Commits. A nested transaction becomes a part of the one around it.
    ///
    /// # Cancel safety
    /// If this future is dropped, the transaction may be committed or rolled back.
    pub async fn commit(self) -> Result<(), Error> {
        self.session.commit(self.depth).await
    }

    /// Rolls back, and waits until it is done.
    ///
    /// # Cancel safety
    /// If this future is dropped, the transaction is rolled back all the same.
    pub async fn rollback(self) -> Result<(), Error> {
        self.session.roll_back(self.depth).await
    }
}

impl Deref for Transaction<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.session.abandon(self.depth);
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}
