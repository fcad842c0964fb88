//! S8 and S12: memory, measured in a process of its own that counts every allocation.

use std::fs;
use std::time::Duration;

use tokio::time::sleep;

use crate::harness::clock::processor_time;
use crate::harness::peer::{Peer, Setup};
use crate::harness::results::Figure;
use crate::harness::runtime::Runtime;
use crate::harness::scenarios::trips::{Load, Pause, fill, play};

const SIZE: usize = 10;
const POOLS: usize = 1_000;
const TRIPS: u32 = 1_000;

/// The allocations of the process so far.
#[derive(Clone, Copy, Debug)]
pub struct Allocated {
    /// Bytes that are in use.
    pub bytes: usize,
    /// How often the process asked for memory.
    pub times: usize,
}

/// The figures of [`idle`].
pub const IDLE: [&str; 2] = ["idle pool bytes", "allocations per trip"];

/// The figures of [`crowd`].
pub const CROWD: [&str; 1] = ["allocations per trip"];

/// The figures of [`many`].
pub const MANY: [&str; 3] = ["KiB per pool", "threads", "idle cpu %"];

/// Reads the counting allocator.
pub type Meter = fn() -> Allocated;

/// S8: the heap of an idle pool of ten, and how often a trip of one task allocates.
pub fn idle<P: Peer>(meter: Meter) -> Vec<Figure> {
    Runtime::CurrentThread.run(async move {
        // The first pool of a process may allocate what all pools share.
        let _first = filled::<P>().await;
        let before = meter();
        let second = filled::<P>().await;
        let bytes = meter().bytes - before.bytes;
        let alone = Load {
            size: SIZE,
            tasks: 1,
            pause: Pause::Never,
        };
        vec![
            (IDLE[0], bytes as f64),
            (IDLE[1], per_trip(&second, alone, meter).await),
        ]
    })
}

/// S8: how often a trip allocates when tasks wait, as in S3.
pub fn crowd<P: Peer>(meter: Meter) -> Vec<Figure> {
    Runtime::CurrentThread.run(async move {
        let load = Load {
            size: 8,
            tasks: 64,
            pause: Pause::Holding,
        };
        let pool = P::build(&Setup::of_size(load.size)).await;
        vec![(CROWD[0], per_trip(&pool, load, meter).await)]
    })
}

/// Returns the allocations per trip. The difference of two rounds leaves out the allocations that
/// begin and end a round.
async fn per_trip<P: Peer>(pool: &P, load: Load, meter: Meter) -> f64 {
    play(pool, load, TRIPS).await;
    let start = meter().times;
    play(pool, load, TRIPS).await;
    let middle = meter().times;
    play(pool, load, 2 * TRIPS).await;
    let end = meter().times;
    let more = (end - middle) as f64 - (middle - start) as f64;
    // A longer round may end with fewer allocations than the one before.
    more.max(0.0) / f64::from(TRIPS) / load.tasks as f64
}

/// S12: a thousand pools of ten, all idle.
pub fn many<P: Peer>(meter: Meter, watch: Duration) -> Vec<Figure> {
    Runtime::CurrentThread.run(async move {
        let before = meter();
        let mut pools = Vec::with_capacity(POOLS);
        for _ in 0..POOLS {
            pools.push(filled::<P>().await);
        }
        let bytes = meter().bytes - before.bytes;
        let threads = fs::read_dir("/proc/self/task").map_or(f64::NAN, |all| all.count() as f64);

        let used = processor_time();
        sleep(watch).await;
        let used = processor_time() - used;

        vec![
            (MANY[0], bytes as f64 / 1024.0 / POOLS as f64),
            (MANY[1], threads),
            (MANY[2], 100.0 * used.as_secs_f64() / watch.as_secs_f64()),
        ]
    })
}

async fn filled<P: Peer>() -> P {
    let pool = P::build(&Setup::of_size(SIZE)).await;
    fill(&pool, SIZE).await;
    pool
}
