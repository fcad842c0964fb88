//! A pool whose figures are known to the millisecond. Tests run it on a paused clock.

use std::time::Duration;

use cenote::{Closures, Lease, Pool};
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub(crate) const NAME: &str = "orders";

/// What is left at the end: one lease, one caller that waits for it, and two resources that have
/// left the pool.
pub(crate) struct Story {
    _pool: Pool<Closures<()>>,
    _held: Lease<Closures<()>>,
    waiter: JoinHandle<()>,
}

impl Drop for Story {
    fn drop(&mut self) {
        self.waiter.abort();
    }
}

pub(crate) fn pool() -> Pool<Closures<()>> {
    let open = async || {
        sleep(Duration::from_millis(20)).await;
        Ok::<_, &str>(())
    };
    let pool = Pool::from_fn(open).name(NAME).max_size(2).max_waiters(1);
    pool.leak_after(Duration::from_secs(1)).build().unwrap()
}

pub(crate) async fn tell(pool: Pool<Closures<()>>) -> Story {
    let millis = |count| sleep(Duration::from_millis(count));
    let acquire = || {
        let pool = pool.clone();
        tokio::spawn(async move { pool.acquire().await.unwrap() })
    };
    let first = pool.acquire().await.unwrap();
    let second = pool.acquire().await.unwrap();
    let limit = Duration::from_millis(100);
    assert!(pool.acquire_within(limit).await.is_err(), "both are out");
    millis(2_000).await;
    assert_eq!(pool.status().leaked, 2);

    let third = acquire();
    millis(1).await;
    assert!(pool.acquire().await.is_err(), "the line is full");
    millis(99).await;
    drop(first);
    let held = third.await.unwrap();
    Lease::discard(second);
    millis(1).await;
    assert_eq!(pool.status().closing, 0);

    pool.resize(1).unwrap();
    let waiter = acquire();
    millis(50).await;
    let waiter = tokio::spawn(async move { drop(waiter.await) });
    Story {
        _pool: pool,
        _held: held,
        waiter,
    }
}
