//! The pools and floors that take part. The rounds of each are plain functions, so that all fit in
//! one list. Behind these pointers every call is static.

use std::time::Duration;

use crate::harness::peer::{Kind, Peer};
use crate::harness::results::Figure;
use crate::harness::runtime::Runtime;
use crate::harness::scenarios::trips::{Load, Took};
use crate::harness::scenarios::{blocking, cold, crowd, growth, heap, storm, timeouts, trips};
#[cfg(feature = "peers")]
use crate::harness::sql::Entry;

/// One pool or floor.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// The name in the tables.
    pub name: &'static str,
    /// Decides the scenarios in which it takes part.
    pub kind: Kind,
    /// S1 to S3.
    pub trips: fn(Runtime, Load, u32) -> Took,
    /// S4.
    pub crowd: fn(Runtime, Duration) -> Vec<Figure>,
    /// S5.
    pub timeouts: fn(Runtime) -> Vec<Figure>,
    /// S6.
    pub storm: fn(Runtime, u64) -> Vec<Figure>,
    /// S7, under a tool that counts instructions.
    pub bare_trips: fn(u32),
    /// S8.
    pub heap: fn(heap::Meter) -> Vec<Figure>,
    /// S8, with waiting tasks.
    pub heap_in_crowd: fn(heap::Meter) -> Vec<Figure>,
    /// S9.
    pub cold: fn(Runtime) -> Vec<Figure>,
    /// S10.
    pub impatient: fn(Runtime) -> Vec<Figure>,
    /// S11.
    pub blocking: fn(usize, u32) -> Took,
    /// S12.
    pub many: fn(heap::Meter, Duration) -> Vec<Figure>,
    /// S13, for the databases that it supports.
    #[cfg(feature = "peers")]
    pub sql: &'static [Entry],
    /// S15.
    pub growth: growth::Rounds,
}

impl Contender {
    /// Collects the rounds of a pool.
    pub const fn new<P: Peer>() -> Self {
        Self {
            name: P::NAME,
            kind: P::KIND,
            trips: trips::round::<P>,
            crowd: crowd::round::<P>,
            timeouts: timeouts::round::<P>,
            storm: storm::round::<P>,
            bare_trips: trips::bare::<P>,
            heap: heap::idle::<P>,
            heap_in_crowd: heap::crowd::<P>,
            cold: cold::start::<P>,
            impatient: cold::impatient::<P>,
            blocking: blocking::round::<P>,
            many: heap::many::<P>,
            #[cfg(feature = "peers")]
            sql: &[],
            growth: growth::Rounds {
                patterns: growth::patterns::round::<P>,
                pools: growth::pools::round::<P>,
                queue: growth::queue::round::<P>,
                opening: growth::opening::round::<P>,
            },
        }
    }

    /// Adds the rounds on real databases.
    #[cfg(feature = "peers")]
    pub const fn with_sql(self, sql: &'static [Entry]) -> Self {
        Self { sql, ..self }
    }
}
