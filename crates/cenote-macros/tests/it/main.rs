//! Tests of the attribute: a suite that runs on two databases, tests for one database, and code
//! that must not compile.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod functions;
mod misuse;
mod postgres;
mod postgres_alone;
mod responses;
mod sqlite;
mod sqlite_alone;
mod world;
