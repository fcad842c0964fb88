//! The layers over real sockets, on real databases. `suite/` is compiled once for each database, against its `world`.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod alike;
mod client;
mod door;
mod errors;
mod postgres;
mod postgres_alone;
mod probes;
mod scopes;
mod sqlite;
mod world;
