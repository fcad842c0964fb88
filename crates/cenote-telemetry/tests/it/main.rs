//! Tests of the exporters. Each of them tells the same story of a pool.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod client;
mod facade;
mod fleet;
mod observability;
mod otel;
mod prometheus;
mod sites;
mod story;
mod trace;
