//! The soak: real pools on a real runtime under mixed load, in rounds.
//!
//! After each round everything stops and the soak counts what is left. If memory, tasks, file
//! descriptors, threads or resources grow with the rounds, something leaks. During a round every
//! acquire is timed, and an acquire that does not end by its deadline ends the soak.
//!
//! The program `soak` runs it (`cargo xtask soak`). Time is real and threads race, so no two runs
//! are alike. The simulation is the test that can be played again.

mod duel;
mod load;
mod pools;
mod resource;
mod sample;
mod timely;

use std::fmt;
use std::future;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use load::Load;
use pools::Pools;
use resource::Thing;

pub use pools::Tally;
pub use sample::{Counts, Heap, NotFlat, Sample};

/// The settings of a soak.
#[derive(Debug)]
pub struct Soak {
    /// For how long.
    pub length: Duration,
    /// Reads the counting allocator. The program installs it, because a library would install it in
    /// every test.
    pub heap: fn() -> Heap,
    /// Leaks on purpose, to prove that the verdict can fail.
    pub leak: Option<Leak>,
}

/// A leak on purpose, once per round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leak {
    /// A byte of memory.
    Allocation,
    /// Some more pages in a buffer that is kept.
    Buffer,
    /// A task that never ends.
    Task,
    /// An open pipe, which has two file descriptors.
    Fd,
    /// A thread that never ends.
    Thread,
    /// A resource that is never closed.
    Resource,
    /// No leak, but an acquire that never ends.
    Acquire,
}

/// Why a soak failed.
#[derive(Debug)]
pub enum Failure {
    /// Something grew.
    NotFlat(NotFlat),
    /// Acquires ended long after their deadlines, or not at all.
    Late(Vec<String>),
    /// A task did not end, or the pools did not become empty. The text shows the state.
    Hangs(String),
    /// So many tasks that only used a pool panicked.
    Panicked(usize),
    /// The system refused what the soak itself needs.
    Io(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFlat(grown) => write!(f, "NOT FLAT: {grown}"),
            Self::Late(late) => write!(f, "LATE: {}", late.join("\nLATE: ")),
            Self::Hangs(seen) => write!(f, "HANGS: {seen}"),
            Self::Panicked(users) => write!(f, "PANICS: {users} tasks or threads of the load"),
            Self::Io(error) => write!(f, "cannot soak: {error}"),
        }
    }
}

/// A round in which the slowest callback reaches its time limit takes a fraction of this.
const HANGS_AFTER: Duration = Duration::from_secs(30);
/// The system may show a joined thread or an ended task for a moment longer.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);
const LONGEST_ROUND: Duration = Duration::from_secs(5);
/// With so many rounds, a leak of one allocation per round grows to twice the limit of the verdict
/// even in the shortest soak.
const FEWEST_ROUNDS: u32 = 60;

impl Soak {
    /// Runs the soak. It shows every sample at once, and ends at the first count that is not flat.
    pub fn run(self, show: impl FnMut(&Sample)) -> Result<Tally, Failure> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
            .map_err(Failure::Io)?;
        let outcome = self.run_on(&runtime, show);
        // A drop would wait for the runtime's threads, and one of them may hang.
        runtime.shutdown_background();
        outcome
    }

    fn run_on(&self, runtime: &Runtime, mut show: impl FnMut(&Sample)) -> Result<Tally, Failure> {
        let _entered = runtime.enter();
        let pools = Arc::new(Pools::new());
        let mut hoard = Hoard::default();
        let rounds = self.rounds();
        // Allocated now, so that the memory of the soak itself does not grow.
        let mut samples = Vec::with_capacity(rounds as usize);
        let started = now();
        for done in 1..=rounds {
            play_round(self.length / rounds, runtime, &pools)?;
            if let Some(leak) = self.leak {
                hoard.keep(leak, runtime, &pools).map_err(Failure::Io)?;
            }
            let late = pools.watch.late_ones();
            if !late.is_empty() {
                return Err(Failure::Late(late));
            }
            let before = samples.last().map(|sample: &Sample| sample.counts);
            let (heap, counts) = self.measure(before, runtime, &pools);
            let sample = Sample {
                at: started.elapsed(),
                left: self.length / rounds * (rounds - done),
                acquired: pools.total().acquired,
                heap,
                counts,
            };
            show(&sample);
            samples.push(sample);
            sample::judge_last(&samples).map_err(Failure::NotFlat)?;
        }
        sample::judge_heap(&samples).map_err(Failure::NotFlat)?;
        Ok(pools.total())
    }

    fn rounds(&self) -> u32 {
        let rounds = self.length.div_duration_f64(LONGEST_ROUND) as u32;
        rounds.max(FEWEST_ROUNDS)
    }

    /// Measures until the counts are as before, or until they have had time to settle.
    fn measure(&self, before: Option<Counts>, runtime: &Runtime, pools: &Pools) -> (Heap, Counts) {
        let since = now();
        loop {
            let heap = (self.heap)();
            let tasks = runtime.metrics().num_alive_tasks();
            let counts = Counts::take(tasks, pools.alive.count());
            if Some(counts) == before || since.elapsed() > SETTLES_WITHIN {
                return (heap, counts);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn play_round(length: Duration, runtime: &Runtime, pools: &Arc<Pools>) -> Result<(), Failure> {
    pools.refill();
    let load = Load::start(runtime.handle(), pools);
    thread::sleep(length);
    load.stop();
    wait(
        || load.busy().is_empty(),
        || format!("still at work: {:?}; {pools:#?}", load.busy()),
    )?;
    let panicked = load.panicked(runtime.handle());
    if panicked > 0 {
        return Err(Failure::Panicked(panicked));
    }
    pools.empty();
    wait(|| pools.are_empty(), || format!("not empty: {pools:#?}"))
}

fn wait(holds: impl Fn() -> bool, seen: impl Fn() -> String) -> Result<(), Failure> {
    let since = now();
    while !holds() {
        if since.elapsed() > HANGS_AFTER {
            return Err(Failure::Hangs(seen()));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Owns the leaks on purpose.
#[derive(Debug, Default)]
struct Hoard {
    memory: Vec<String>,
    buffer: Vec<u8>,
    things: Vec<Thing>,
    pipes: Vec<(io::PipeReader, io::PipeWriter)>,
}

impl Hoard {
    fn keep(&mut self, leak: Leak, runtime: &Runtime, pools: &Pools) -> io::Result<()> {
        match leak {
            Leak::Allocation => self.memory.push("x".to_owned()),
            Leak::Buffer => self.buffer.resize(self.buffer.len() + 16 * 1024, 0),
            Leak::Task => drop(runtime.spawn(future::pending::<()>())),
            Leak::Fd => self.pipes.push(io::pipe()?),
            Leak::Thread => drop(thread::spawn(|| {
                loop {
                    thread::park();
                }
            })),
            Leak::Resource => self.things.push(Thing::new(false, &pools.alive)?),
            Leak::Acquire => {
                let never = future::pending();
                let timed = pools
                    .watch
                    .time(pools.any(), "hangs", Duration::ZERO, never);
                let _ = runtime.block_on(timed);
            }
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this is a stopwatch"
)]
fn now() -> Instant {
    Instant::now()
}
