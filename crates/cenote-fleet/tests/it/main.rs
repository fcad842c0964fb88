//! Fleets of pools: simulated by seed, and with real pools. Those on real servers are tests of
//! `cenote-fleet-servers`.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod faults;
mod joining;
mod log;
mod real_pools;
mod rig;
mod seen;
mod sharing;
mod sim;
mod simulation;

use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
