//! What must hold in every status, whatever happened. Used by the other files.

use cenote::Status;
use cenote_testkit::GatedPool;

/// The snapshot, with what must hold in each.
#[track_caller]
pub(crate) fn sample(pool: &GatedPool) -> Status {
    let status = pool.status();
    assert_eq!(
        status.total,
        status.idle + status.in_use + status.opening + status.cleaning + status.checking,
        "{status:#?}"
    );
    assert!(
        status.total + status.closing <= status.max_size,
        "{status:#?}"
    );
    assert_eq!(status.oldest_wait.is_some(), status.waiting > 0);
    assert!(status.released + status.detached <= status.acquired);
    assert!(status.discarded <= status.released);
    status
}

/// Every counter since birth.
pub(crate) fn counters(status: &Status) -> Vec<u128> {
    let mut counters: Vec<u128> = [
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
    ]
    .map(u128::from)
    .to_vec();
    counters.push(status.wait_time.as_nanos());
    counters.extend(status.closed.iter().map(|(_, count)| u128::from(count)));
    counters
}

/// Everything opened is closed, detached, or alive.
#[track_caller]
pub(crate) fn assert_accounted(status: &Status) {
    let alive = (status.total - status.opening) as u64;
    assert_eq!(
        status.opened,
        status.closed.total() + status.detached + alive,
        "{status:#?}"
    );
}
