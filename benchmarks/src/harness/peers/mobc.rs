//! mobc with its defaults, except for the number of idle connections, of which it keeps two by
//! default.

use std::fmt;
use std::time::Duration;

use ::mobc::{Connection, Error, Manager, Pool, async_trait};

use crate::harness::backend::{Backend, Refused, Thing};
use crate::harness::peer::{Kind, Peer, Setup};

/// The adapter.
#[derive(Clone)]
pub(super) struct Mobc(Pool<Backend>);

#[async_trait]
impl Manager for Backend {
    type Connection = Thing;
    type Error = Refused;

    async fn connect(&self) -> Result<Thing, Refused> {
        Ok(Backend::connect(self).await)
    }

    async fn check(&self, thing: Thing) -> Result<Thing, Refused> {
        Ok(thing)
    }
}

impl fmt::Debug for Mobc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(Self::NAME).finish_non_exhaustive()
    }
}

impl Peer for Mobc {
    const NAME: &'static str = "mobc";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = Connection<Backend>;

    async fn build(setup: &Setup) -> Self {
        let size = setup.size as u64;
        let pool = Pool::builder().max_open(size).max_idle(size);
        Self(pool.build(setup.backend.clone()))
    }

    async fn acquire(&self) -> Connection<Backend> {
        self.0.get().await.expect("an acquire succeeds")
    }

    async fn acquire_within(&self, limit: Duration) -> Option<Connection<Backend>> {
        match self.0.get_timeout(limit).await {
            Ok(connection) => Some(connection),
            Err(Error::Timeout) => None,
            Err(error) => panic!("{error}"),
        }
    }
}
