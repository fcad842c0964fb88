//! The suite on PostgreSQL.

use crate::world::postgres as world;

#[path = "suite/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "one suite, two databases")]
mod suite;
