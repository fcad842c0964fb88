//! A suite that runs on three databases, and tests for one database. `suite/` is compiled once for
//! each database, with its `world`; `faults/` once for each database that has a server.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

mod any_db;
#[cfg(feature = "macros")]
mod attribute;
#[cfg(feature = "macros")]
mod attribute_processes;
#[cfg(feature = "sea-orm")]
mod bakery;
mod building;
mod classes;
mod context;
mod context_tenants;
mod denied;
mod mysql;
mod mysql_alone;
mod pgbouncer;
mod postgres;
mod postgres_alone;
mod postgres_copies;
mod postgres_listener;
mod scanning;
#[cfg(feature = "sea-orm")]
mod sea_orm_alone;
mod sqlite;
mod sqlite_alone;
mod sqlite_deadlines;
mod sqlite_faults;
mod sqlite_groups;
mod sqlite_hygiene;
mod sqlite_writes;
mod tls;
mod world;
