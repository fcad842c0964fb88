//! What a pool must be able to do to be measured. Static dispatch, nothing boxed: an adapter costs nothing.

use std::time::Duration;

use tokio::runtime::Handle;

use crate::backend::Backend;

/// A pool, or a floor: the least that something like a pool can cost.
pub trait Peer: Clone + Send + Sync + 'static {
    /// As it stands in the tables.
    const NAME: &'static str;
    /// Where it can take part.
    const KIND: Kind;
    /// Whoever drops it gives the resource back.
    type Guard<'a>: Send
    where
        Self: 'a;

    /// A pool of that size on that backend, everything else by its default.
    fn build(setup: &Setup) -> impl Future<Output = Self> + Send;

    /// Waits for a resource. Panics when the pool gives up.
    fn acquire(&self) -> impl Future<Output = Self::Guard<'_>> + Send;

    /// Waits as long as that, by the pool's own means if it has any.
    fn acquire_within(
        &self,
        limit: Duration,
    ) -> impl Future<Output = Option<Self::Guard<'_>>> + Send {
        async move { tokio::time::timeout(limit, self.acquire()).await.ok() }
    }

    /// Blocks this thread, which is none of the runtime's, by the pool's own means if it has any.
    fn acquire_blocking(&self, runtime: &Handle) -> Self::Guard<'_> {
        runtime.block_on(self.acquire())
    }
}

/// What takes part in what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A pool for tasks.
    Pool,
    /// A pool for threads: who waits blocks one.
    Blocking,
    /// No pool, but it can wait.
    WaitingFloor,
    /// No pool, and it cannot wait: it must never run dry.
    Floor,
}

impl Kind {
    /// Whether more tasks than resources may use it.
    pub fn waits(self) -> bool {
        matches!(self, Self::Pool | Self::WaitingFloor)
    }
}

/// What a pool is built from.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// How many resources at most.
    pub size: usize,
    /// Who makes them.
    pub backend: Backend,
    /// How long an acquire may wait, where only the whole pool can be told; `None` is its default.
    pub acquire_timeout: Option<Duration>,
}

impl Setup {
    /// Resources that connect at once.
    pub fn of_size(size: usize) -> Self {
        Self {
            size,
            ..Self::default()
        }
    }
}
