//! The counters since birth.

use crate::status::Closes;

/// Those of every trip are not among them: they are written where the trip writes anyway, and summed up when somebody asks.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// By resources that are gone. Of the others, their slots know.
    pub(super) acquired: u64,
    pub(super) discarded: u64,
    pub(super) detached: u64,
    pub(super) opened: u64,
    pub(super) open_failed: u64,
    pub(super) timed_out: u64,
    pub(super) cancelled: u64,
    pub(super) leaked: u64,
    pub(super) closed: Closes,
}
