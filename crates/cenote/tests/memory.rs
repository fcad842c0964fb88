//! The memory of waiters that are gone is freed. This test is alone in its program, because it
//! counts live bytes.

use std::alloc::System;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use cenote::Pool;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn living_bytes() -> usize {
    let stats = HEAP.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

const WAITERS: usize = 300_000;
const MOST: usize = 1 << 20;

#[tokio::test]
async fn an_idle_pool_keeps_less_than_a_megabyte_after_a_crowd_of_waiters() {
    let pool = Pool::from_fn(async || Ok::<_, &str>(()))
        .max_size(1)
        .build()
        .unwrap();
    let held = pool.acquire().await.unwrap();
    let before = living_bytes();
    let mut crowd: Vec<Pin<Box<dyn Future<Output = bool> + '_>>> = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..WAITERS {
        let mut waiting = Box::pin(async { pool.acquire_within(None).await.is_ok() });
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        crowd.push(waiting);
    }
    assert_eq!(pool.status().waiting, WAITERS);
    let crowded = living_bytes();

    drop(crowd);
    drop(held);

    let left = living_bytes().saturating_sub(before);
    assert!(crowded - before > 10 * MOST, "the crowd was counted");
    assert!(left < MOST, "{left} bytes are left");
    assert_eq!(pool.status().idle, 1);
}
