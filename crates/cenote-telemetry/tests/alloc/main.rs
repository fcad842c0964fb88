//! A trip allocates nothing for its observers. Alone in its program, because it counts all
//! allocations.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::alloc::System;
use std::hint::black_box;
use std::sync::Arc;

use cenote::{Closures, Pool};
use cenote_telemetry::{Pools, Prometheus, Sites};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn pool() -> Pool<Closures<()>> {
    Pool::from_fn(async || Ok::<_, &str>(())).build().unwrap()
}

/// Returns how many allocations a thousand trips make.
fn count(pool: &Pool<Closures<()>>) -> usize {
    let trip = || drop(pool.acquire_blocking().unwrap());
    trip();
    let region = Region::new(COUNTED);
    for _ in 0..1_000 {
        trip();
    }
    region.change().allocations
}

#[test]
fn a_trip_allocates_nothing_for_prometheus_and_sites() {
    let (plain, watched) = (pool(), pool());
    let _prometheus = Prometheus::new(Pools::of(&watched));
    watched.attach(Arc::new(Sites::new(10)));

    // Other threads of the pools allocate now and then, so one quiet round of several is enough.
    let quiet = |pool| (0..20).any(|_| count(pool) == 0);

    assert!(quiet(&plain), "or the pool itself allocates");
    assert!(quiet(&watched));
    // The counter counts.
    let region = Region::new(COUNTED);
    black_box(vec![1]);
    assert!(region.change().allocations > 0);
}
