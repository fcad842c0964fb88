//! Fleets of pools: simulated by seed, and with real pools and servers.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[cfg(all(
    feature = "mysql",
    feature = "nats",
    feature = "postgres",
    feature = "redis"
))]
mod chaos;
#[cfg(any(
    all(feature = "mysql", feature = "nats"),
    all(feature = "postgres", feature = "redis")
))]
mod counted;
mod faults;
#[cfg(any(feature = "nats", feature = "redis"))]
mod files;
mod joining;
#[cfg(any(feature = "mysql", feature = "nats", feature = "redis"))]
mod live;
#[cfg(any(feature = "nats", feature = "redis"))]
mod model;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "postgres")]
mod postgres;
mod real_pools;
#[cfg(feature = "redis")]
mod redis;
mod rig;
mod seen;
mod sharing;
mod sim;
mod simulation;
#[cfg(any(feature = "mysql", feature = "nats", feature = "redis"))]
mod suite;

use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
