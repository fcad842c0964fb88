//! Soaks real pools for some minutes and says whether anything grew. `cargo xtask soak` runs it.

use std::alloc::System;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use cenote_testkit::soak::{Heap, Leak, Sample, Soak};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const USAGE: &str = "usage: soak [--minutes N | --seconds N]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(soak) = read(&args) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if !Path::new("/proc/self").exists() {
        println!("fds and threads are not counted: there is no /proc here");
    }
    println!(
        "      at     left  heap bytes  allocations  tasks  fds  threads  resources    acquires"
    );
    match soak.run(show) {
        Ok(done) => {
            println!("FLAT: {done:?}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn read(args: &[String]) -> Option<Soak> {
    let mut soak = Soak {
        length: Duration::from_secs(180),
        heap,
        leak: None,
    };
    for pair in args.chunks(2) {
        let [name, value] = pair else { return None };
        match name.as_str() {
            "--minutes" => {
                soak.length = Duration::from_secs(value.parse::<u32>().ok()? as u64 * 60)
            }
            "--seconds" => soak.length = Duration::from_secs(value.parse::<u32>().ok()?.into()),
            // Only the tests of the verdict use it, so the usage does not name it.
            "--leak" => soak.leak = Some(leak(value)?),
            _ => return None,
        }
    }
    (!soak.length.is_zero()).then_some(soak)
}

fn leak(name: &str) -> Option<Leak> {
    Some(match name {
        "allocation" => Leak::Allocation,
        "buffer" => Leak::Buffer,
        "task" => Leak::Task,
        "fd" => Leak::Fd,
        "thread" => Leak::Thread,
        "resource" => Leak::Resource,
        "acquire" => Leak::Acquire,
        _ => return None,
    })
}

fn heap() -> Heap {
    let seen = COUNTING.stats();
    Heap {
        bytes: seen.bytes_allocated - seen.bytes_deallocated,
        allocations: seen.allocations - seen.deallocations,
    }
}

fn show(sample: &Sample) {
    let counts = &sample.counts;
    println!(
        "{:>6.1} s {:>6.1} s  {:>10}  {:>11}  {:>5}  {:>3}  {:>7}  {:>9}  {:>10}",
        sample.at.as_secs_f64(),
        sample.left.as_secs_f64(),
        sample.heap.bytes,
        sample.heap.allocations,
        counts.tasks,
        told(counts.fds),
        told(counts.threads),
        counts.resources,
        sample.acquired,
    );
}

/// Shows `?` for a count that this system does not offer.
fn told(count: Option<usize>) -> String {
    count.map_or_else(|| "?".to_owned(), |count| count.to_string())
}
