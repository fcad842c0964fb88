//! A transaction that is passed along as an argument. The ambient one is in `ambient.rs`.

use std::fmt;
use std::ops::{Deref, DerefMut};

use mysql_async::{Error, IsolationLevel};

use crate::session::Session;

/// How a transaction begins. A nested transaction is a savepoint, which has no options.
///
/// ```
/// use cenote_mysql::TransactionOptions;
/// use cenote_mysql::mysql_async::IsolationLevel;
///
/// let report = TransactionOptions::new().isolation(IsolationLevel::Serializable).read_only();
/// assert!(format!("{report:?}").contains("Serializable"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionOptions {
    isolation: Option<IsolationLevel>,
    read_only: bool,
    snapshot: bool,
}

impl TransactionOptions {
    /// The defaults of the server.
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

    /// Takes the snapshot for reads at once, and not with the first read.
    pub fn consistent_snapshot(mut self) -> Self {
        self.snapshot = true;
        self
    }

    fn sql(self) -> String {
        let mut sql = String::new();
        if let Some(isolation) = self.isolation {
            // Holds for the next transaction only.
            sql = format!("SET TRANSACTION ISOLATION LEVEL {isolation}; ");
        }
        sql += "START TRANSACTION";
        sql += match (self.snapshot, self.read_only) {
            (false, false) => "",
            (false, true) => " READ ONLY",
            (true, false) => " WITH CONSISTENT SNAPSHOT",
            (true, true) => " WITH CONSISTENT SNAPSHOT, READ ONLY",
        };
        sql
    }
}

/// A transaction. It dereferences to its [`Session`], whose statements are part of it. Dropped
/// before its [`commit`](Transaction::commit), it is rolled back: before the next statement of the
/// session, or when the session goes back to the pool.
///
/// Statements that commit by themselves, like `CREATE TABLE`, end it. So does a deadlock. Later
/// statements of the transaction, and its commit, then fail.
#[must_use = "a transaction that is dropped is rolled back"]
pub struct Transaction<'a> {
    session: &'a mut Session,
    depth: usize,
}

impl Session {
    /// Begins a transaction, or a savepoint inside a transaction of this session.
    ///
    /// ```no_run
    /// # async fn f(pool: cenote_mysql::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_mysql::mysql_async::prelude::Queryable;
    ///
    /// let mut lease = pool.acquire().await?;
    /// let mut transaction = lease.transaction().await?;
    /// transaction.exec_drop("UPDATE account SET cents = 0 WHERE id = ?", (7,)).await?;
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
        let depth = self.begin(options).await?;
        Ok(Transaction {
            session: self,
            depth,
        })
    }

    /// Begins a transaction or a savepoint, and returns its depth. If the future is dropped midway,
    /// the connection is lost, and the transaction with it.
    pub(crate) async fn begin(&mut self, options: TransactionOptions) -> Result<usize, Error> {
        let depth = self.depth + 1;
        match depth {
            1 => self.run(&options.sql()).await?,
            _ => self.run(&format!("SAVEPOINT cenote_{depth}")).await?,
        }
        self.depth = depth;
        Ok(depth)
    }

    /// Commits the transaction at `depth`. If that fails, the transaction is rolled back.
    pub(crate) async fn commit(&mut self, depth: usize) -> Result<(), Error> {
        let committed = match depth {
            1 => self.run("COMMIT").await,
            _ => self.run(&format!("RELEASE SAVEPOINT cenote_{depth}")).await,
        };
        match committed {
            Ok(()) => self.depth = depth - 1,
            Err(_) => self.abandon(depth),
        }
        committed
    }

    /// Rolls the transaction at `depth` back.
    pub(crate) async fn roll_back(&mut self, depth: usize) -> Result<(), Error> {
        self.abandon(depth);
        self.make_ready().await
    }

    /// Rolls the transaction at `depth` back before the next statement, unless it has ended.
    pub(crate) fn abandon(&mut self, depth: usize) {
        if self.depth >= depth {
            self.depth = depth - 1;
            self.undo = Some(self.undo.map_or(depth, |outer| outer.min(depth)));
        }
    }
}

/// Returns the statements that roll the transaction at `depth` back.
pub(crate) fn undo(depth: usize) -> String {
    match depth {
        1 => String::from("ROLLBACK"),
        _ => format!("ROLLBACK TO cenote_{depth}; RELEASE SAVEPOINT cenote_{depth}"),
    }
}

impl Transaction<'_> {
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

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Session {
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
