//! A time limit of one call, in place of the pool's `acquire_timeout`.

use std::time::{Duration, Instant};

use crate::db::Db;
use crate::dialect::Dialect;

/// Longer than any program runs.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl<DB: Dialect> Db<DB> {
    /// Returns a handle whose calls wait for a connection for at most `limit`, in place of
    /// `acquire_timeout`. It is the same database: the pool, its connections and the transaction of
    /// the caller's scope are shared. It costs as much as a clone.
    ///
    /// The limit holds for the wait, not for the statement. `tokio::time::timeout` limits both.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use cenote_sqlx::{Db, is_timeout};
    ///
    /// let db = Db::sqlite("sqlite::memory:").max_size(1).build()?;
    /// let hurried = db.within(Duration::from_millis(5));
    /// let held = db.acquire().await?;
    /// let late = sqlx::query("SELECT 1").execute(&hurried).await.unwrap_err();
    /// assert!(is_timeout(&late));
    /// drop(held);
    /// sqlx::query("SELECT 1").execute(&hurried).await?;
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    pub fn within(&self, limit: Duration) -> Self {
        let mut db = self.clone();
        db.limit = Some(limit);
        db
    }

    /// Returns when a call that begins now times out. `None`: never.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.limit {
            Some(limit) => now().checked_add(limit.min(LONGEST)),
            None => self.pool().deadline(),
        }
    }
}

/// The time, also on a clock that a test has paused.
#[expect(
    clippy::disallowed_methods,
    reason = "the pool takes the deadlines of its callers as such a time"
)]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
