//! cenote with all its defaults on: acquire timeout, call sites, held-since, status and leak
//! reports.

use std::time::Duration;

use cenote::{AcquireError, Lease, Manager, Pool};
use tokio::runtime::Handle;

use crate::harness::backend::{Backend, Refused, Thing};
use crate::harness::peer::{Kind, Peer, Setup};

/// The adapter.
#[derive(Clone, Debug)]
pub(crate) struct Cenote(Pool<Things>);

/// The backend behind cenote's trait.
pub(crate) struct Things(pub(crate) Backend);

impl Manager for Things {
    type Resource = Thing;
    type Error = Refused;

    async fn open(&self) -> Result<Thing, Refused> {
        Ok(self.0.connect().await)
    }
}

impl Peer for Cenote {
    const NAME: &'static str = "cenote";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = Lease<Things>;

    async fn build(setup: &Setup) -> Self {
        let pool = Pool::builder(Things(setup.backend.clone())).max_size(setup.size);
        Self(pool.build().expect("the setup is in range"))
    }

    async fn acquire(&self) -> Lease<Things> {
        self.0.acquire().await.expect("an acquire succeeds")
    }

    async fn acquire_within(&self, limit: Duration) -> Option<Lease<Things>> {
        match self.0.acquire_within(limit).await {
            Ok(lease) => Some(lease),
            Err(AcquireError::TimedOut(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn acquire_blocking(&self, _: &Handle) -> Lease<Things> {
        self.0.acquire_blocking().expect("an acquire succeeds")
    }
}
