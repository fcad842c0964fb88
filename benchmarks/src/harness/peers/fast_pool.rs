//! fast_pool with its defaults: a check on every acquire, and a limit of 30 s for each.

use std::time::Duration;

use ::fast_pool::{ConnectionGuard, Manager, Pool};

use crate::harness::backend::{Backend, Refused, Thing};
use crate::harness::peer::{Kind, Peer, Setup};

/// The adapter.
#[derive(Clone, Debug)]
pub(super) struct FastPool(Pool<Backend>);

impl Manager for Backend {
    type Connection = Thing;
    type Error = Refused;

    async fn connect(&self) -> Result<Thing, Refused> {
        Ok(Backend::connect(self).await)
    }

    async fn check(&self, _: &mut Thing) -> Result<(), Refused> {
        Ok(())
    }
}

impl Peer for FastPool {
    const NAME: &'static str = "fast_pool";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = ConnectionGuard<Backend>;

    async fn build(setup: &Setup) -> Self {
        let pool = Pool::new(setup.backend.clone());
        pool.set_max_open(setup.size as u64);
        Self(pool)
    }

    async fn acquire(&self) -> ConnectionGuard<Backend> {
        self.0.get().await.expect("an acquire succeeds")
    }

    /// Its only errors here are timeouts, because no connect fails.
    async fn acquire_within(&self, limit: Duration) -> Option<ConnectionGuard<Backend>> {
        self.0.get_timeout(Some(limit)).await.ok()
    }
}
