//! Tests of the layers over real sockets, on real databases. `suite/` is compiled once for each
//! database, with its `world`.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod alike;
mod client;
mod errors;
mod health;
mod leased;
mod log;
mod postgres;
mod postgres_alone;
mod reports;
mod retry_after;
mod scopes;
mod shed;
mod sqlite;
mod world;
mod writers;
