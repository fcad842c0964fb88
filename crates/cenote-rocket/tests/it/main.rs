//! Tests of the pools over real sockets, on a real PostgreSQL.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[path = "../../../cenote-actix/tests/it/client.rs"]
#[expect(dead_code, reason = "shared with the tests of another crate")]
mod client;
mod drivers;
mod faults;
mod guards;
mod handlers;
mod launch;
#[path = "../../../cenote-actix/tests/it/rig.rs"]
#[expect(dead_code, reason = "shared with the tests of another crate")]
mod rig;
mod server;
mod shutdown;
mod transactions;
