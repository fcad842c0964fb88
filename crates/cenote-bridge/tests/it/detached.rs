//! `detach` of a deadpool manager is called once for each object that leaves the pool.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use cenote::{CloseReason, Lease, Pool};
use cenote_bridge::{Deadpool, DeadpoolObject};
use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};

/// Makes numbers and counts those that were detached. A zero cannot be recycled.
struct Numbers(Arc<AtomicUsize>);

impl Manager for Numbers {
    type Type = usize;
    type Error = io::Error;

    async fn create(&self) -> io::Result<usize> {
        Ok(7)
    }

    async fn recycle(&self, number: &mut usize, metrics: &Metrics) -> RecycleResult<io::Error> {
        assert_eq!(metrics.recycled.is_some(), metrics.recycle_count > 0);
        if *number == 0 {
            return Err(RecycleError::message("zero"));
        }
        Ok(())
    }

    fn detach(&self, _: &mut usize) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn pool() -> (Pool<Deadpool<Numbers>>, Arc<AtomicUsize>) {
    let detached = Arc::new(AtomicUsize::new(0));
    let manager = Deadpool::new(Numbers(Arc::clone(&detached)));
    (
        Pool::builder(manager).max_size(1).build().unwrap(),
        detached,
    )
}

#[tokio::test]
async fn an_object_that_is_taken_is_detached_once() {
    let (pool, detached) = pool();
    let lease = pool.acquire().await.unwrap();

    let number = DeadpoolObject::take(Lease::detach(lease));

    assert_eq!((number, detached.load(SeqCst)), (7, 1));
}

#[tokio::test]
async fn an_object_that_cannot_be_recycled_is_detached_once() {
    let (pool, detached) = pool();
    **pool.acquire().await.unwrap() = 0;

    let next = pool.acquire().await.unwrap();

    assert_eq!((**next, detached.load(SeqCst)), (7, 1));
    assert_eq!(pool.status().closes.by(CloseReason::FailedClean), 1);
}

#[tokio::test]
async fn the_objects_of_a_closed_pool_are_detached_once() {
    let (pool, detached) = pool();
    drop(pool.acquire().await.unwrap());

    pool.close_within(Duration::from_secs(10)).await;

    assert_eq!(detached.load(SeqCst), 1);
}

#[tokio::test]
async fn an_object_is_recycled_between_two_uses_unless_only_checks_recycle() {
    let (pool, _) = pool();
    drop(pool.acquire().await.unwrap());
    let recycled = DeadpoolObject::metrics(&pool.acquire().await.unwrap()).recycle_count;

    let manager = Deadpool::new(Numbers(Arc::default())).recycle_only_on_check();
    let pool = Pool::builder(manager).max_size(1).build().unwrap();
    drop(pool.acquire().await.unwrap());
    let untouched = DeadpoolObject::metrics(&pool.acquire().await.unwrap()).recycle_count;

    assert_eq!((recycled, untouched), (1, 0));
}

#[tokio::test]
async fn a_check_recycles() {
    let manager = Deadpool::new(Numbers(Arc::default())).recycle_only_on_check();
    let pool = Pool::builder(manager)
        .max_size(1)
        .check_after_idle(Duration::ZERO);
    let pool = pool.build().unwrap();
    drop(pool.acquire().await.unwrap());

    let lease = pool.acquire().await.unwrap();

    assert_eq!(DeadpoolObject::metrics(&lease).recycle_count, 1);
}
