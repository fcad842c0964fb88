//! Tests of the middleware over real sockets, on a real PostgreSQL.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod bodies;
mod client;
mod disconnects;
mod faults;
mod handlers;
mod rig;
mod saturation;
mod scopes;
mod server;
mod shutdown;
mod transactions;
