//! deadpool's managed pool with its defaults, which have no timeouts, and a second time with all
//! three timeouts on.

use std::time::Duration;

use ::deadpool::Runtime;
use ::deadpool::managed::{
    Manager, Metrics, Object, Pool, PoolError, RecycleResult, TimeoutType, Timeouts,
};

use crate::harness::backend::{Backend, Refused, Thing};
use crate::harness::peer::{Kind, Peer, Setup};

/// The adapter.
#[derive(Clone, Debug)]
pub(super) struct Deadpool(Pool<Backend>);

/// The same with timeouts.
#[derive(Clone, Debug)]
pub(super) struct DeadpoolTimeouts(Pool<Backend>);

impl Manager for Backend {
    type Type = Thing;
    type Error = Refused;

    async fn create(&self) -> Result<Thing, Refused> {
        Ok(self.connect().await)
    }

    async fn recycle(&self, _: &mut Thing, _: &Metrics) -> RecycleResult<Refused> {
        Ok(())
    }
}

impl Peer for Deadpool {
    const NAME: &'static str = "deadpool";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = Object<Backend>;

    async fn build(setup: &Setup) -> Self {
        Self(build(setup, Timeouts::new()))
    }

    async fn acquire(&self) -> Object<Backend> {
        self.0.get().await.expect("an acquire succeeds")
    }

    async fn acquire_within(&self, limit: Duration) -> Option<Object<Backend>> {
        acquire_within(&self.0, limit).await
    }
}

impl Peer for DeadpoolTimeouts {
    const NAME: &'static str = "deadpool + timeouts";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = Object<Backend>;

    async fn build(setup: &Setup) -> Self {
        let limit = Some(Duration::from_secs(5));
        let timeouts = Timeouts {
            wait: limit,
            create: limit,
            recycle: limit,
        };
        Self(build(setup, timeouts))
    }

    async fn acquire(&self) -> Object<Backend> {
        self.0.get().await.expect("an acquire succeeds")
    }

    async fn acquire_within(&self, limit: Duration) -> Option<Object<Backend>> {
        acquire_within(&self.0, limit).await
    }
}

fn build(setup: &Setup, timeouts: Timeouts) -> Pool<Backend> {
    let pool = Pool::builder(setup.backend.clone())
        .max_size(setup.size)
        .timeouts(timeouts)
        .runtime(Runtime::Tokio1);
    pool.build().expect("the setup is in range")
}

/// deadpool has a limit for each phase. Here only the wait has one.
async fn acquire_within(pool: &Pool<Backend>, limit: Duration) -> Option<Object<Backend>> {
    match pool
        .timeout_get(&Timeouts::wait_millis(limit.as_millis() as u64))
        .await
    {
        Ok(object) => Some(object),
        Err(PoolError::Timeout(TimeoutType::Wait)) => None,
        Err(error) => panic!("{error}"),
    }
}
