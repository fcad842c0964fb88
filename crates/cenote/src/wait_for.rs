//! Futures that wait until the pool is in some state.

use std::future::poll_fn;
use std::task::Poll;

use crate::manager::Manager;
use crate::pool::Pool;
use crate::shell::watcher::Watcher;
use crate::status::{Health, Status};

impl<M: Manager + 'static> Pool<M> {
    /// Waits until the pool is closed, by [`close`](Pool::close) on any of its handles.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let other = pool.clone();
    /// let told = tokio::spawn(async move { other.closed().await });
    /// pool.close();
    /// told.await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future only stops the waiting.
    pub async fn closed(&self) {
        let mut watcher = Watcher::new(&self.shared);
        poll_fn(|context| {
            watcher.watch(context);
            match self.is_closed() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// Waits until `condition` holds, and returns the status that it held for.
    ///
    /// The condition is asked once now, and again after every change of the status. The passing of
    /// time alone is no change. While a future waits here, every acquire goes through the ledger,
    /// which costs some of its speed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let lease = pool.acquire().await?;
    /// let other = pool.clone();
    /// let quiet = tokio::spawn(async move { other.wait_for(|status| status.in_use == 0).await });
    /// drop(lease);
    /// assert_eq!(quiet.await?.idle, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future only stops the waiting.
    pub async fn wait_for(&self, mut condition: impl FnMut(&Status) -> bool) -> Status {
        self.wait_until(|| Some(self.status()).filter(|status| condition(status)))
            .await
    }

    /// Waits until [`health`](Pool::health) says that the pool is ready, and returns that verdict.
    /// A pool that has opened nothing yet is not known to be ready; [`warm`](Pool::warm) finds out.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let other = pool.clone();
    /// let ready = tokio::spawn(async move { other.healthy().await });
    /// pool.warm().await?;
    /// assert_eq!(ready.await?, cenote::Health::Healthy);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future only stops the waiting.
    pub async fn healthy(&self) -> Health {
        let is_healthy = |health: &Health| matches!(health, Health::Healthy | Health::Busy);
        self.wait_until(|| Some(self.health()).filter(is_healthy))
            .await
    }

    async fn wait_until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        let mut watcher = Watcher::of_every_change(&self.shared);
        poll_fn(|context| {
            watcher.watch(context);
            look().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
