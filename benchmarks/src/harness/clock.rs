//! The stopwatch: wall time, the processor time of the process, and how long its threads waited for
//! a processor.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Returns the wall time.
#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this is a stopwatch"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns the processor time of all threads of this process so far.
pub fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        used.tv_sec.try_into().unwrap_or_default(),
        used.tv_nsec.try_into().unwrap_or_default(),
    )
}

/// Returns how long the living threads of this process were ready to run and did not, because other
/// threads ran. Returns `None` if the system does not show it.
pub fn kept_waiting() -> Option<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        // A thread may end in the middle of this loop.
        let Ok(said) = fs::read_to_string(thread.ok()?.path().join("schedstat")) else {
            continue;
        };
        nanos += said.split(' ').nth(1)?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(nanos))
}
