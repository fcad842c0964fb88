//! sqlx's pool with its defaults: a ping on every acquire and on every return, and a limit of 30 s.
//! Its connections come from a driver that does nothing else.

use std::time::Duration;

use sqlx_core::Error;
use sqlx_core::pool::{Pool, PoolConnection, PoolOptions};

use super::sqlx_driver::{Driver, Options};
use crate::harness::peer::{Kind, Peer, Setup};

/// The adapter.
#[derive(Clone, Debug)]
pub(super) struct Sqlx(Pool<Driver>);

impl Peer for Sqlx {
    const NAME: &'static str = "sqlx";
    const KIND: Kind = Kind::Pool;
    type Guard<'a> = PoolConnection<Driver>;

    async fn build(setup: &Setup) -> Self {
        let mut pool = PoolOptions::new().max_connections(setup.size as u32);
        if let Some(limit) = setup.acquire_timeout {
            pool = pool.acquire_timeout(limit);
        }
        Self(pool.connect_lazy_with(Options(setup.backend.clone())))
    }

    async fn acquire(&self) -> PoolConnection<Driver> {
        self.0.acquire().await.expect("an acquire succeeds")
    }

    /// The setup has the limit, because it is a setting of the whole pool.
    async fn acquire_within(&self, limit: Duration) -> Option<PoolConnection<Driver>> {
        match self.0.acquire().await {
            Ok(connection) => Some(connection),
            Err(Error::PoolTimedOut) => None,
            Err(error) => panic!("{error} within {limit:?}"),
        }
    }
}
