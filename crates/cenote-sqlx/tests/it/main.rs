//! One suite for three databases, and what concerns one of them alone. `suite/` is compiled once for each, against its `world`; `faults/` for
//! each that has a server.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod classes;
mod mysql;
mod mysql_alone;
mod pgbouncer;
mod postgres;
mod postgres_alone;
mod sqlite;
mod sqlite_alone;
mod sqlite_deadlines;
mod sqlite_faults;
mod sqlite_hygiene;
mod template;
mod tls;
mod words;
mod world;
