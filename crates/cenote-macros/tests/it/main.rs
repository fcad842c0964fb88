//! The attribute at work: one suite for two databases, what concerns one of them, and what does not compile.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod functions;
mod misuse;
mod postgres;
mod postgres_alone;
mod responses;
mod sqlite;
mod sqlite_alone;
mod world;
