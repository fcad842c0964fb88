//! Ways from a lease to types of sqlx: a connection of its own, and a transaction of sqlx.

use cenote::scope::Bound;
use sqlx::{Connection, Error};

use crate::dialect::Dialect;
use crate::error::lost;
use crate::lease::Lease;
use crate::manager;
use crate::transaction::{Transaction, TransactionOptions};

impl<DB: Dialect> Lease<DB> {
    /// Takes the connection out of the pool for good, as a plain connection of sqlx. Its slot is
    /// free at once, so the connection no longer counts against `max_size`.
    ///
    /// A transaction that is open is rolled back. Other state of the session stays: settings,
    /// temporary tables, subscriptions, the settings of a context. A connection that is part of an
    /// outer transaction or of a sandbox cannot leave.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let url = format!("sqlite://{}/shop.db?mode=rwc", folder.path().display());
    /// use cenote_sqlx::{Db, Lease};
    ///
    /// let db = Db::sqlite(url).max_size(1).build()?;
    /// let mut own: sqlx::SqliteConnection = Lease::detach(db.acquire().await?).await?;
    /// sqlx::query("CREATE TABLE t (a INTEGER)").execute(&mut own).await?;
    /// assert_eq!(db.pool().status().total, 0);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// If this future is dropped, the connection goes back to the pool.
    pub async fn detach(mut this: Self) -> Result<DB::Connection, Error> {
        if this.is_pinned() || this.session().state.floor > 0 {
            return Err(Error::InvalidArgument(String::from(
                "the connection belongs to a transaction or a scope around this code, and cannot \
                 be detached: detach one that was acquired outside",
            )));
        }
        manager::end_transactions(this.session()).await?;
        if this.session().state.broken {
            return Err(lost("the connection is lost and cannot be detached"));
        }
        let bound = this.let_go();
        let bound = bound.expect("the bound lease is taken only when this lease ends");
        Ok(Bound::detach(bound).connection)
    }

    /// Begins a transaction as sqlx's own type, for functions that take
    /// `&mut sqlx::Transaction<'_, DB>`. If it is dropped without a commit, it is rolled back.
    ///
    /// Such a function can do anything with the connection, so the session is reset afterwards, or
    /// closed where there is no reset. On SQLite the transaction takes the lock for writing at
    /// once, but does not queue with the writers of the handle. For that, begin one with
    /// [`Db::begin`](crate::Db::begin), and a nested one with [`Transaction::begin_sqlx`].
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let url = format!("sqlite://{}/shop.db?mode=rwc", folder.path().display());
    /// # let db = cenote_sqlx::Db::sqlite(url).build()?;
    /// # sqlx::query("CREATE TABLE orders (item TEXT)").execute(&db).await?;
    /// use sqlx::{Sqlite, Transaction};
    ///
    /// /// A function that was written for sqlx.
    /// async fn order(transaction: &mut Transaction<'_, Sqlite>) -> Result<(), sqlx::Error> {
    ///     let insert = sqlx::query("INSERT INTO orders VALUES ('a chair')");
    ///     insert.execute(&mut **transaction).await.map(drop)
    /// }
    ///
    /// let mut lease = db.acquire().await?;
    /// let mut transaction = lease.begin_sqlx().await?;
    /// order(&mut transaction).await?;
    /// transaction.commit().await?;
    /// let orders: i64 = sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&db).await?;
    /// assert_eq!(orders, 1);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future leaves no transaction open.
    pub async fn begin_sqlx(&mut self) -> Result<sqlx::Transaction<'_, DB>, Error> {
        let session = self.session();
        session.prepare_to_begin().await?;
        let statement = DB::begin(&TransactionOptions::new()).filter(|_| session.depth() == 0);
        let connection = session.raw();
        match statement {
            Some(sql) => connection.begin_with(sqlx::AssertSqlSafe(sql)).await,
            None => connection.begin().await,
        }
    }
}

impl<DB: Dialect> Transaction<'_, DB> {
    /// Begins a nested transaction, a savepoint, as sqlx's own type: for functions that take
    /// `&mut sqlx::Transaction<'_, DB>`. See [`Lease::begin_sqlx`] for an example.
    ///
    /// # Cancel safety
    /// If this future is dropped, the outer transaction may be lost. Then its commit is an error.
    pub async fn begin_sqlx(&mut self) -> Result<sqlx::Transaction<'_, DB>, Error> {
        self.lease().begin_sqlx().await
    }
}
