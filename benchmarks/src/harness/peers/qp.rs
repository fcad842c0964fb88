//! qp by its faster method, which does not check. Its check is boxed and would cost an allocation.
//! It has no time limit.

use std::fmt;

use ::qp::resource::Manage;
use ::qp::{Pool, Pooled};

use crate::harness::backend::{Backend, Refused, Thing};
use crate::harness::peer::{Kind, Peer, Setup};

/// The adapter.
#[derive(Clone)]
pub(super) struct Qp(Pool<Backend>);

#[mobc::async_trait]
impl Manage for Backend {
    type Output = Thing;
    type Error = Refused;

    async fn try_create(&self) -> Result<Thing, Refused> {
        Ok(self.connect().await)
    }
}

impl fmt::Debug for Qp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(Self::NAME).finish_non_exhaustive()
    }
}

impl Peer for Qp {
    const NAME: &'static str = "qp";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = Pooled<'a, Backend>;

    async fn build(setup: &Setup) -> Self {
        Self(Pool::new(setup.backend.clone(), setup.size))
    }

    async fn acquire(&self) -> Pooled<'_, Backend> {
        self.0
            .acquire_unchecked()
            .await
            .expect("an acquire succeeds")
    }
}
