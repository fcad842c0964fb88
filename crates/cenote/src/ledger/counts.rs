//! The counters since birth.

use crate::status::Closes;

/// Those that every trip writes are not among them: they are in the ledger, near its lock.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) discarded: u64,
    pub(super) detached: u64,
    pub(super) opened: u64,
    pub(super) open_failed: u64,
    pub(super) timed_out: u64,
    pub(super) cancelled: u64,
    pub(super) leaked: u64,
    pub(super) closed: Closes,
}
