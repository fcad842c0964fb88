//! The trait of a measured pool. Dispatch is static and nothing is boxed, so an adapter costs
//! nothing.

use std::time::Duration;

use tokio::runtime::Handle;

use crate::harness::backend::Backend;

/// A pool, or a floor: the least that something like a pool can cost.
pub trait Peer: Clone + Send + Sync + 'static {
    /// The name in the tables.
    const NAME: &'static str;
    /// Decides the scenarios in which it takes part.
    const KIND: Kind;
    /// Gives the resource back on drop.
    type Guard<'a>: Send
    where
        Self: 'a;

    /// Builds a pool with this size and backend. Everything else is its default.
    fn build(setup: &Setup) -> impl Future<Output = Self> + Send;

    /// Waits for a resource. Panics if the pool refuses.
    fn acquire(&self) -> impl Future<Output = Self::Guard<'_>> + Send;

    /// Waits for at most `limit`, by the pool's own means if it has any.
    fn acquire_within(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Option<Self::Guard<'_>>> + Send {
        async move { tokio::time::timeout(limit, self.acquire()).await.ok() }
    }

    /// Blocks this thread, which is not one of the runtime's, by the pool's own means if it has
    /// any.
    fn acquire_blocking(&self, runtime: &Handle) -> Self::Guard<'_> {
        runtime.block_on(self.acquire())
    }
}

/// What a contender can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A pool for tasks.
    Pool,
    /// A pool for threads. A waiting caller blocks its thread.
    Blocking,
    /// No pool, but callers can wait.
    WaitingFloor,
    /// No pool, and callers cannot wait, so it must never run dry.
    Floor,
    /// A pool for the tasks of one thread. It takes part in S1, S3 and S7.
    Local,
    /// A pool of database connections. It takes part in S13 only.
    Database,
}

impl Kind {
    /// Returns whether it is a pool for tasks.
    pub fn is_pool(self) -> bool {
        self == Self::Pool
    }

    /// Returns whether more tasks than resources may use it.
    pub fn waits(self) -> bool {
        matches!(self, Self::Pool | Self::WaitingFloor | Self::Local)
    }
}

/// The settings of a pool.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The largest number of resources.
    pub size: usize,
    /// Opens the resources.
    pub backend: Backend,
    /// How long an acquire may wait, for pools that only have a limit for all acquires. `None` is
    /// the pool's default.
    pub acquire_timeout: Option<Duration>,
}

impl Setup {
    /// A setup of this size whose connects take no time.
    pub fn of_size(size: usize) -> Self {
        Self {
            size,
            ..Self::default()
        }
    }
}
