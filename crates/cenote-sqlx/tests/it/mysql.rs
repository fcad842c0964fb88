//! The suite on MySQL.

use crate::world::mysql as world;

#[path = "suite/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "one suite, three databases")]
mod suite;
