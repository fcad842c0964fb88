//! What a user adds to opens and checks: code, and a query.

use futures_core::future::BoxFuture;
use sqlx::Error;

use crate::builder::Builder;
use crate::dialect::Dialect;

type Connection<DB> = <DB as sqlx::Database>::Connection;
type Prepared<'c> = BoxFuture<'c, Result<(), Error>>;

/// Code of the user that prepares a connection.
pub(crate) type AfterConnect<DB> =
    dyn for<'c> Fn(&'c mut Connection<DB>) -> Prepared<'c> + Send + Sync;

impl<DB: Dialect> Builder<DB> {
    /// Runs code on every connection after it was opened, and after every reset, behind the
    /// [settings](Builder::setting). Use it for what SQL text alone cannot do: functions and
    /// collations of SQLite, or statements that depend on an answer. An error closes the
    /// connection. What the code changes counts as the normal state of the session.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_sqlx::Db;
    ///
    /// let db = Db::sqlite("sqlite::memory:").max_size(1).after_connect(|connection| {
    ///     Box::pin(async move {
    ///         let mut handle = connection.lock_handle().await?;
    ///         handle.create_collation("backwards", |a, b| b.cmp(a))
    ///     })
    /// });
    /// let db = db.build()?;
    /// let sql = "SELECT a FROM (SELECT 'x' AS a UNION SELECT 'y') ORDER BY a COLLATE backwards";
    /// let letters: Vec<String> = sqlx::query_scalar(sql).fetch_all(&db).await?;
    /// assert_eq!(letters, ["y", "x"]);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// The pool drops the future, and closes the connection, when the open takes longer than
    /// `open_timeout` or the cleaning longer than `clean_timeout`.
    pub fn after_connect(
        mut self,
        code: impl for<'c> Fn(&'c mut DB::Connection) -> BoxFuture<'c, Result<(), Error>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.after_connect = Some(Box::new(code));
        self
    }

    /// Sets the query that finds out whether a connection works, in place of the driver's ping. An
    /// error closes the connection. It must not change the session.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use cenote_sqlx::Db;
    ///
    /// let db = Db::sqlite("sqlite::memory:").max_size(1);
    /// let db = db.check_after_idle(Duration::ZERO).check_query("SELECT * FROM ready").build()?;
    /// let mut lease = db.acquire().await?; // a new connection is not checked
    /// sqlx::query("CREATE TABLE ready (a INTEGER)").execute(&mut lease).await?;
    /// drop(lease);
    /// sqlx::query("DROP TABLE ready").execute(&db).await?;
    /// sqlx::query("SELECT 1").execute(&db).await?; // the check has failed
    /// assert_eq!(db.pool().status().opened, 2);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn check_query(mut self, sql: impl Into<String>) -> Self {
        self.check_query = Some(sql.into());
        self
    }
}
