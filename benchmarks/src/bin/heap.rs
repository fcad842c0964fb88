//! One pool under a counting allocator: `bench-heap idle|crowd|many POOL MILLIS`. It prints one
//! figure per line.

use std::alloc::System;
use std::env;
use std::process::ExitCode;
use std::time::Duration;

use cenote_benchmarks::contender;
use cenote_benchmarks::harness::scenarios::heap::Allocated;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [what, pool, millis] = args.as_slice() else {
        eprintln!("bench-heap: idle|crowd|many POOL MILLIS");
        return ExitCode::FAILURE;
    };
    let (Some(pool), Ok(millis)) = (contender(pool), millis.parse()) else {
        eprintln!("bench-heap: no pool `{pool}`, or `{millis}` is no number");
        return ExitCode::FAILURE;
    };
    let figures = match what.as_str() {
        "idle" => (pool.heap)(allocated),
        "crowd" => (pool.heap_in_crowd)(allocated),
        _ => (pool.many)(allocated, Duration::from_millis(millis)),
    };
    for (_, value) in figures {
        println!("{value}");
    }
    ExitCode::SUCCESS
}

fn allocated() -> Allocated {
    let so_far = HEAP.stats();
    Allocated {
        bytes: so_far
            .bytes_allocated
            .saturating_sub(so_far.bytes_deallocated),
        times: so_far.allocations + so_far.reallocations,
    }
}
