//! The suite on SQLite.

use crate::world::sqlite as world;

#[path = "suite/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "one suite, two databases")]
mod suite;
