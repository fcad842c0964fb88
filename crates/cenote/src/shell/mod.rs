//! The shell: acts. Async code around the ledger; all user code runs here, with no lock held.

pub(crate) mod acquire;
pub(crate) mod breaker_group;
pub(crate) mod carry_out;
pub(crate) mod driver;
pub(crate) mod guarded;
pub(crate) mod kind;
pub(crate) mod pooled;
pub(crate) mod release;
pub(crate) mod severers;
pub(crate) mod shared;
pub(crate) mod strategy;
pub(crate) mod upkeep_task;
pub(crate) mod uppers;
mod wait_told;
pub(crate) mod waiting;
pub(crate) mod watcher;
pub(crate) mod whole_pool;
