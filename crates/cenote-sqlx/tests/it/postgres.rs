//! The suite and the faults on PostgreSQL.

use crate::world::postgres as world;

#[path = "faults/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "the same faults, two servers")]
mod faults;
#[path = "suite/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "one suite, three databases")]
mod suite;
