//! What a key costs, in time and memory.
//! Run: cargo run --release -p cenote-keyed --example keyed_overhead

#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::alloc::System;
use std::error::Error;
use std::future;
use std::time::{Duration, Instant};

use cenote::{Manager, Pool};
use cenote_keyed::Pools;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

struct Cheap;

impl Manager for Cheap {
    type Resource = u64;
    type Error = String;

    fn open(&self) -> impl Future<Output = Result<u64, String>> + Send {
        future::ready(Ok(0))
    }
}

const TRIPS: u32 = 1_000_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::builder(Cheap).build()?;
    drop(pool.acquire().await?);
    let began = Instant::now();
    for _ in 0..TRIPS {
        *pool.acquire().await? += 1;
    }
    println!(
        "a plain pool: {:.0?} for acquire and release",
        began.elapsed() / TRIPS
    );

    for keys in [10, 1_000, 100_000] {
        measure(keys).await?;
    }
    Ok(())
}

/// All keys are used once. Then a hundred of them are busy.
async fn measure(keys: u32) -> Result<(), Box<dyn Error>> {
    let pools = Pools::builder(|_: &u32| Cheap)
        .total(200)
        .max_size(4)
        .build()?;
    let before = living();
    let (mut most, mut slowest) = (0, Duration::ZERO);
    let began = Instant::now();
    for key in 0..keys {
        let one = Instant::now();
        drop(pools.acquire(&key).await?);
        slowest = slowest.max(one.elapsed());
        most = most.max(living().saturating_sub(before));
    }
    let first = began.elapsed() / keys;

    let busy = keys.min(100);
    for key in 0..busy {
        drop(pools.acquire(&key).await?);
    }
    let began = Instant::now();
    for trip in 0..TRIPS {
        **pools.acquire(&(trip % busy)).await? += 1;
    }
    let trip = began.elapsed() / TRIPS;
    println!(
        "{keys:>7} keys, {busy} busy: {trip:.0?} for acquire and release; {first:.1?} for the first \
         use of a key, {slowest:.1?} at most; {} keys known, at most {} KiB",
        pools.status().keys,
        most / 1024,
    );
    Ok(())
}

fn living() -> usize {
    let stats = MEMORY.stats();
    stats
        .bytes_allocated
        .saturating_sub(stats.bytes_deallocated)
}
