//! The rules of every status.

use cenote::Status;
use cenote_testkit::{GatedPool, counters};

/// Returns a snapshot, and asserts the rules of every snapshot.
#[track_caller]
pub(crate) fn checked_status(pool: &GatedPool) -> Status {
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
    let alive = (status.total - status.opening) as u64;
    let gone = status.closes.total() + status.detached;
    assert_eq!(status.opened, alive + gone, "{status:#?}");
    let taken = status.acquired - status.released - status.detached;
    assert!(taken <= status.in_use as u64, "{status:#?}");
    assert!(status.discarded <= status.released, "{status:#?}");
    assert_eq!(status.oldest_wait.is_some(), status.waiting > 0);
    status
}

/// Asserts that no counter went backwards.
#[track_caller]
pub(crate) fn assert_grew(before: &Status, after: &Status) {
    let (before, after) = (counters(before), counters(after));
    let grew = before.iter().zip(&after).all(|(old, new)| old <= new);
    assert!(grew, "{before:?} became {after:?}");
}
