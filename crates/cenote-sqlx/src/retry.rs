//! Transactions that are tried again after a conflict with others.

use std::error::Error as StdError;
use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use sqlx::Error;

use crate::db::Db;
use crate::dialect::Dialect;
use crate::error::Class;
use crate::transaction::TransactionOptions;

/// How often a transaction is tried, and how long it rests in between: a random time up to a limit,
/// which doubles after each try.
///
/// ```
/// use std::time::Duration;
/// use cenote_sqlx::Retry;
///
/// let retry = Retry { attempts: 3, ..Retry::default() };
/// assert_eq!(retry.first_rest, Duration::from_millis(10));
/// assert_eq!(retry.longest_rest, Duration::from_secs(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The number of tries in total. Default 5; zero counts as one.
    pub attempts: u32,
    /// The limit of the rest after the first try. Default 10 ms.
    pub first_rest: Duration,
    /// The limit of every rest. Default 1 s.
    pub longest_rest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_rest: Duration::from_millis(10),
            longest_rest: Duration::from_secs(1),
        }
    }
}

impl Retry {
    /// Returns a random rest after this many tries, which are at least one.
    pub(crate) fn rest(&self, tried: u32) -> Duration {
        let doubled = 1_u32.checked_shl(tried - 1).unwrap_or(u32::MAX);
        let limit = self
            .first_rest
            .saturating_mul(doubled)
            .min(self.longest_rest);
        limit.mul_f64(fastrand::f64())
    }
}

impl<DB: Dialect> Db<DB> {
    /// Runs `work` in a [`transaction`](Db::transaction), and runs the whole transaction again
    /// after a conflict with others ([`Class::Conflict`]), whether `work` or the commit failed. Any
    /// other error ends it. Inside a transaction `work` runs once: only the outermost one can be
    /// repeated.
    ///
    /// The conflict may be `E` itself or one of its sources.
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = cenote_sqlx::Db::sqlite("sqlite::memory:?cenote.max_size=1").build()?;
    /// use cenote_sqlx::Retry;
    ///
    /// sqlx::query("CREATE TABLE t (a INTEGER)").execute(&db).await?;
    /// let retry = Retry { attempts: 3, ..Retry::default() };
    /// let done = db.retrying(retry, || sqlx::query("INSERT INTO t VALUES (1)").execute(&db)).await?;
    /// assert_eq!(done.rows_affected(), 1);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "sqlite"))] fn main() {}
    /// ```
    ///
    /// # Cancel safety
    /// As [`transaction`](Db::transaction).
    #[track_caller]
    pub fn retrying<F, Fut, T, E>(
        &self,
        retry: Retry,
        work: F,
    ) -> impl Future<Output = Result<T, E>>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: StdError + From<Error> + 'static,
    {
        self.retrying_at(Location::caller(), retry, work)
    }

    async fn retrying_at<F, Fut, T, E>(
        &self,
        site: &'static Location<'static>,
        retry: Retry,
        mut work: F,
    ) -> Result<T, E>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: StdError + From<Error> + 'static,
    {
        let options = TransactionOptions::new();
        let attempts = if self.in_transaction() {
            1
        } else {
            retry.attempts
        };
        let mut tried = 1;
        loop {
            let outcome = self.transaction_at(site, options, &mut work).await;
            match outcome {
                Err(error) if tried < attempts && is_conflict::<DB>(&error) => {
                    tokio::time::sleep(retry.rest(tried)).await;
                    tried += 1;
                }
                outcome => return outcome,
            }
        }
    }
}

/// Returns whether this error, or the first error of sqlx among its sources, is a conflict.
pub(crate) fn is_conflict<DB: Dialect>(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<Error>() {
            return DB::classify(error) == Class::Conflict;
        }
        #[cfg(feature = "sea-orm")]
        if let Some(error) = crate::sea_orm::sqlx_error(error) {
            return DB::classify(error) == Class::Conflict;
        }
        next = error.source();
    }
    false
}
