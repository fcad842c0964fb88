//! One upkeep task for several pools.

use std::fmt;
use std::sync::Arc;

use crate::manager::Manager;
use crate::shell::kind::Threads;
use crate::shell::upkeep_task::UpkeepGroup;

/// One upkeep task for several pools of the same manager, for a program that has very many of them.
/// Give it to each of them by [`Builder::shared_upkeep`](crate::Builder::shared_upkeep).
///
/// The task looks at a pool when something is due in that pool, so many pools that rest cost no
/// time. It starts on the runtime of the first caller, and ends with the last pool.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::{Pool, SharedUpkeep};
///
/// let upkeep = SharedUpkeep::new();
/// let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
/// let mut pools = Vec::new();
/// for _ in 0..100 {
///     let pool = Pool::from_fn(async || Ok::<_, &str>(()));
///     let pool = pool.shared_upkeep(&upkeep).build()?;
///     drop(pool.acquire().await?);
///     pools.push(pool);
/// }
/// assert!(tasks() <= 2, "one for the upkeep, and one for the runtime");
/// # Ok(()) }
/// ```
pub struct SharedUpkeep<M: Manager + 'static> {
    pub(crate) group: Arc<UpkeepGroup<Threads<M>>>,
}

impl<M: Manager + 'static> SharedUpkeep<M> {
    /// Makes an upkeep for pools that are built later.
    pub fn new() -> Self {
        Self {
            group: Arc::default(),
        }
    }
}

impl<M: Manager + 'static> Default for SharedUpkeep<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Manager + 'static> Clone for SharedUpkeep<M> {
    fn clone(&self) -> Self {
        Self {
            group: Arc::clone(&self.group),
        }
    }
}

impl<M: Manager + 'static> fmt::Debug for SharedUpkeep<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedUpkeep").finish_non_exhaustive()
    }
}
