//! Closing resources that no caller holds, because they are needed elsewhere.

use crate::manager::Manager;
use crate::pool::Pool;
use crate::shell::kind::{Kind, Threads};

impl<M: Manager + 'static> Pool<M> {
    /// Closes up to `most` resources that no caller holds: the least recently used idle ones now,
    /// then those that are being checked or cleaned, when that is done. Returns how many. All of
    /// them are sure to be closed. A resource that is being opened is not among them.
    ///
    /// The pool may open others when it needs them: [`resize`](Pool::resize) makes it smaller for
    /// good. `min_size` and `min_idle` are not looked at here, and upkeep refills the pool. The
    /// [annex](crate::Builder::annex) keeps its resources.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use cenote::{CloseReason, Lease};
    ///
    /// let (first, second) = (pool.acquire().await?, pool.acquire().await?);
    /// drop(first);
    /// drop(second);
    /// assert_eq!(pool.evict(1), 1);
    /// assert_eq!(Lease::id(&pool.acquire().await?), 2, "the first was unused for longer");
    /// assert_eq!(pool.status().closes.by(CloseReason::Shrunk), 1);
    ///
    /// let _held = pool.acquire().await?;
    /// assert_eq!(pool.evict(1), 0, "a lease is never taken away");
    /// # Ok(()) }
    /// ```
    pub fn evict(&self, most: usize) -> usize {
        self.shared
            .order(Threads::<M>::here(), |ledger, now, orders| {
                ledger.shed(most, now, orders)
            })
    }
}
