//! r2d2 with its defaults, which check on every acquire. A waiting caller blocks its thread, so
//! r2d2 takes part only where no caller waits.

use ::r2d2::{ManageConnection, Pool, PooledConnection};
use tokio::runtime::Handle;

use crate::harness::backend::{Backend, Refused, Thing};
use crate::harness::peer::{Kind, Peer, Setup};

/// The adapter.
#[derive(Clone, Debug)]
pub(super) struct R2d2(Pool<Backend>);

impl ManageConnection for Backend {
    type Connection = Thing;
    type Error = Refused;

    fn connect(&self) -> Result<Thing, Refused> {
        Ok(self.connect_blocking())
    }

    fn is_valid(&self, _: &mut Thing) -> Result<(), Refused> {
        Ok(())
    }

    fn has_broken(&self, _: &mut Thing) -> bool {
        false
    }
}

impl Peer for R2d2 {
    const NAME: &'static str = "r2d2 (blocking)";
    const KIND: Kind = Kind::Blocking;
    type Guard<'a> = PooledConnection<Backend>;

    async fn build(setup: &Setup) -> Self {
        let pool = Pool::builder().max_size(setup.size as u32);
        let pool = pool.build(setup.backend.clone());
        Self(pool.expect("the setup is in range"))
    }

    async fn acquire(&self) -> PooledConnection<Backend> {
        self.0.get().expect("an acquire succeeds")
    }

    fn acquire_blocking(&self, _: &Handle) -> PooledConnection<Backend> {
        self.0.get().expect("an acquire succeeds")
    }
}
