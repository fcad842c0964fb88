//! The shell: acts. Async code around the ledger; all user code runs here, with no lock held.

pub(crate) mod acquire;
pub(crate) mod breaker_group;
pub(crate) mod carry_out;
pub(crate) mod driver;
pub(crate) mod guarded;
pub(crate) mod pooled;
pub(crate) mod severers;
pub(crate) mod shared;
pub(crate) mod strategy;
pub(crate) mod upkeep_task;
pub(crate) mod waiting;
pub(crate) mod watcher;
