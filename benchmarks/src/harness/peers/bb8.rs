//! bb8 with its defaults: a check on every acquire, and a limit of 30 s for each.

use ::bb8::{ManageConnection, Pool, PooledConnection, RunError};

use crate::harness::backend::{Backend, Refused, Thing};
use crate::harness::peer::{Kind, Peer, Setup};

/// The adapter.
#[derive(Clone, Debug)]
pub(super) struct Bb8(Pool<Backend>);

impl ManageConnection for Backend {
    type Connection = Thing;
    type Error = Refused;

    async fn connect(&self) -> Result<Thing, Refused> {
        Ok(Backend::connect(self).await)
    }

    async fn is_valid(&self, _: &mut Thing) -> Result<(), Refused> {
        Ok(())
    }

    fn has_broken(&self, _: &mut Thing) -> bool {
        false
    }
}

impl Peer for Bb8 {
    const NAME: &'static str = "bb8";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = PooledConnection<'a, Backend>;

    async fn build(setup: &Setup) -> Self {
        let mut pool = Pool::builder().max_size(setup.size as u32);
        if let Some(limit) = setup.acquire_timeout {
            pool = pool.connection_timeout(limit);
        }
        let pool = pool.build(setup.backend.clone()).await;
        Self(pool.expect("nothing is opened yet"))
    }

    async fn acquire(&self) -> PooledConnection<'_, Backend> {
        self.0.get().await.expect("an acquire succeeds")
    }

    /// The setup has the limit, because it is a setting of the whole pool.
    async fn acquire_within(
        &self,
        limit: std::time::Duration,
    ) -> Option<PooledConnection<'_, Backend>> {
        match self.0.get().await {
            Ok(connection) => Some(connection),
            Err(RunError::TimedOut) => None,
            Err(RunError::User(error)) => panic!("{error} within {limit:?}"),
        }
    }
}
