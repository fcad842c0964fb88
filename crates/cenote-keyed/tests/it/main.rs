//! Keyed pools: one budget over many keys, in use, misused, and under faults.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod capping;
mod closing;
mod errors;
mod faults;
mod giving_up;
mod keys;
mod many_keys;
mod postgres;
mod rig;
mod simulation;
mod threads;

use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// What must happen happens long before this, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
