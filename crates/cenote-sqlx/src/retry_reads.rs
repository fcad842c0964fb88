//! Reads that are tried once more, because their connection turned out to be dead.

use crate::builder::Builder;
use crate::command::Command;
use crate::db::Db;
use crate::dialect::Dialect;
use crate::reading::Access;

impl<DB: Dialect> Builder<DB> {
    /// Sets whether a read through `&db` whose connection was lost before the first row is tried
    /// once more, on another connection. Default true.
    ///
    /// Only a text that reads is tried again (`SELECT`, `VALUES`, `TABLE`, `SHOW`, `WITH`,
    /// `EXPLAIN` without `ANALYZE`), outside a transaction and a changed session. A text that calls
    /// a function of the database that writes (`nextval`, `pg_notify`, locks) does not count. Set
    /// it to false if functions of your own write when they are selected.
    ///
    /// ```
    /// # #[cfg(feature = "postgres")] fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_sqlx::Db;
    ///
    /// let db = Db::postgres("postgres://app@localhost/shop").retry_reads(false).build()?;
    /// assert_eq!(db.pool().status().opened, 0);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "postgres"))] fn main() {}
    /// ```
    pub fn retry_reads(mut self, retry: bool) -> Self {
        self.retry_reads = retry;
        self
    }
}

impl<DB: Dialect> Db<DB> {
    /// Returns a copy of a read that may be tried on another connection, if its connection turns
    /// out to be dead.
    pub(crate) fn spare(&self, command: &Command<DB>) -> Option<Command<DB>> {
        let retries = self.pool().manager().template.retry_reads;
        if !retries || command.reading().access != Access::ReadsAgain {
            return None;
        }
        // Another connection has neither the transaction nor the changes of a session.
        (!self.has_pinned()).then(|| command.copy())
    }
}
