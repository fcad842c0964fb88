//! The counters of a status, for tests that compare two of them.

use cenote::Status;

/// Returns every counter since the pool was built. None of them ever goes backwards.
pub fn counters(status: &Status) -> Vec<u128> {
    let counts = [
        status.acquired,
        status.waited,
        status.released,
        status.discarded,
        status.detached,
        status.opened,
        status.open_failed,
        status.timed_out,
        status.cancelled,
        status.leaked,
    ];
    let closes = status.closes.iter().map(|(_, count)| count);
    let mut counters: Vec<u128> = counts.into_iter().chain(closes).map(u128::from).collect();
    counters.push(status.wait_time.as_nanos());
    counters
}
