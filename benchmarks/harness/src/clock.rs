//! The stopwatch: wall time, the processor time of the process, and how long it was kept waiting for a processor.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Now, on the wall.
#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this is a stopwatch"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// What all threads of this process have used of the processors so far.
pub fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        used.tv_sec.try_into().unwrap_or_default(),
        used.tv_nsec.try_into().unwrap_or_default(),
    )
}

/// How long the living threads of this process were ready to run and did not, because others ran. `None` where the system does not say.
pub fn kept_waiting() -> Option<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        // A thread may end while we look.
        let Ok(said) = fs::read_to_string(thread.ok()?.path().join("schedstat")) else {
            continue;
        };
        nanos += said.split(' ').nth(1)?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(nanos))
}
