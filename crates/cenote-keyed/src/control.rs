//! Operations on all pools: look at them, resize the budget, retire resources, close.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use cenote::{Holder, Leftover, Manager, Status};
use tokio::time::Instant;

use crate::error::BuildError;
use crate::pools::Pools;

/// One snapshot of the budget, from [`Pools::status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetStatus {
    /// How many places there are.
    pub total: usize,
    /// How many of them are held. Those of resources that are being opened or closed are counted.
    pub held: usize,
    /// How many of those held are about to come back, because their resources are being closed for
    /// another key.
    pub leaving: usize,
    /// How many opens wait for a place.
    pub waiting: usize,
    /// How many keys are known. Keys without resources are dropped when other keys come.
    pub keys: usize,
}

impl<K, M> Pools<K, M>
where
    K: Hash + Eq + Clone + fmt::Debug + Send + Sync + 'static,
    M: Manager + 'static,
{
    /// Returns the state of the budget.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pools = cenote_keyed::doc::pools();
    /// drop(pools.acquire(&"a").await?);
    /// let status = pools.status();
    /// assert_eq!((status.held, status.total, status.keys), (1, 2, 1));
    /// # Ok(()) }
    /// ```
    pub fn status(&self) -> BudgetStatus {
        let keys = self.shared.keys.len();
        self.shared.room.read(|budget| BudgetStatus {
            total: budget.total(),
            held: budget.held(),
            leaving: budget.leaving(),
            waiting: budget.tickets(),
            keys,
        })
    }

    /// Returns the state of the pool of each known key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pools = cenote_keyed::doc::pools();
    /// let _lease = pools.acquire(&"a").await?;
    /// let (key, status) = &pools.statuses()[0];
    /// assert_eq!((*key, status.in_use), ("a", 1));
    /// # Ok(()) }
    /// ```
    pub fn statuses(&self) -> Vec<(K, Status)> {
        let entries = self.shared.keys.all().into_iter();
        let statuses = entries.map(|entry| (entry.key.clone(), entry.pool.status()));
        statuses.collect()
    }

    /// Returns every lease that is out, with its key, the longest first.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pools = cenote_keyed::doc::pools();
    /// let _lease = pools.acquire(&"a").await?;
    /// let (key, holder) = &pools.leases()[0];
    /// assert_eq!(*key, "a");
    /// println!("{key}: {holder}"); // a: resource 1 at src/main.rs:12:34 for 3.2s by task 17
    /// # Ok(()) }
    /// ```
    pub fn leases(&self) -> Vec<(K, Holder)> {
        let entries = self.shared.keys.all().into_iter();
        let mut leases: Vec<_> = entries
            .flat_map(|entry| {
                let leases = entry.pool.leases().into_iter();
                leases
                    .map(|holder| (entry.key.clone(), holder))
                    .collect::<Vec<_>>()
            })
            .collect();
        leases.sort_by_key(|(_, holder)| std::cmp::Reverse(holder.held_for));
        leases
    }

    /// Changes the total of the budget. It grows at once. It shrinks by idle resources now, the
    /// least recently used first, and by others as they come back.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pools = cenote_keyed::doc::pools();
    /// pools.resize(5)?;
    /// assert_eq!(pools.status().total, 5);
    /// assert!(pools.resize(0).is_err());
    /// # Ok(()) }
    /// ```
    pub fn resize(&self, total: usize) -> Result<(), BuildError> {
        if total == 0 {
            return Err(BuildError::Total);
        }
        self.shared.room.resize(total);
        Ok(())
    }

    /// Retires all resources of all keys: idle ones are closed at once, the others when they come
    /// back.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pools = cenote_keyed::doc::pools();
    /// drop(pools.acquire(&"a").await?);
    /// pools.invalidate();
    /// assert_eq!(pools.pool(&"a")?.status().idle, 0);
    /// # Ok(()) }
    /// ```
    pub fn invalidate(&self) {
        for entry in self.shared.keys.all() {
            entry.pool.invalidate();
        }
    }

    /// Closes all pools for good. All waiters fail at once, and so do later acquires. Idle
    /// resources are closed now, and the others as they come back.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pools = cenote_keyed::doc::pools();
    /// pools.close();
    /// assert!(pools.is_closed());
    /// assert!(pools.acquire(&"a").await.is_err());
    /// # Ok(()) }
    /// ```
    pub fn close(&self) {
        for entry in self.shared.keys.close() {
            entry.close();
        }
    }

    /// As [`close`](Pools::close), and waits up to `limit` until all leases have come back and all
    /// resources are closed. Returns what was left then, by key: nothing, if all went well.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pools = cenote_keyed::doc::pools();
    /// use std::time::Duration;
    ///
    /// let lease = pools.acquire(&"a").await?;
    /// let left = pools.close_within(Duration::from_millis(5)).await;
    /// assert_eq!((left[0].0, left[0].1.leases.len()), ("a", 1));
    /// drop(lease);
    /// assert!(pools.close_within(Duration::from_secs(1)).await.is_empty());
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// The first poll closes the pools. Dropping this future only stops the waiting.
    pub async fn close_within(&self, limit: Duration) -> Vec<(K, Leftover)> {
        self.close();
        #[expect(clippy::disallowed_methods, reason = "one limit for many waits")]
        let deadline = Instant::now() + limit;
        let mut left = Vec::new();
        for entry in self.shared.keys.all() {
            #[expect(clippy::disallowed_methods, reason = "one limit for many waits")]
            let rest = deadline.saturating_duration_since(Instant::now());
            let leftover = entry.pool.close_within(rest).await;
            if !leftover.is_empty() {
                left.push((entry.key.clone(), leftover));
            }
        }
        left
    }

    /// Returns whether the pools were closed. [`close`](Pools::close) has an example.
    pub fn is_closed(&self) -> bool {
        self.shared.keys.is_closed()
    }
}
