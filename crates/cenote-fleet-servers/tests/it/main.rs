//! Fleets of pools on real servers.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod chaos;
mod counted;
mod files;
mod live;
mod model;
mod mysql;
mod nats;
mod postgres;
mod redis;
mod sqlx;
mod suite;
mod tls;

use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
