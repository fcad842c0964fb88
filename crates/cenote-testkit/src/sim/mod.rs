//! The simulation: a whole pool, its clients and its backend, played from one number.
//!
//! What is played is the real pool through its public door: nothing of it is copied here. A seed draws the configuration, the
//! backend's faults, the clients' doings and the order in which they are polled; the clock is tokio's, paused. So a seed is a
//! schedule: it can be played again, and its history is the same to the byte.
//!
//! # Oracles
//! - **O1 cap**: never more alive or opening than `max_size`; after a shrink, than what existed then, and that only falls. Nothing idle
//!   outlives a shrink that it is in the way of.
//! - **O2 one holder** per resource, and none while a callback looks at it.
//! - **O3 first come, first served**, and no barging.
//! - **O4 deadlines**: an acquire ends by its deadline and one tick of the timer, and runs out of time not before. One that is not polled is
//!   granted nothing after its deadline, and what it did not claim by then is taken back.
//! - **O5 books**: a status adds up, its counters agree with what the clients counted and the observer was told, and none goes backwards.
//! - **O6 fit**: nothing dirty, broken, refused, unproven, invalidated, expired or worn is lent; nothing is lent by a pool that is closed,
//!   suspended or inactive, and no more than `probes` by one that recovers. A refusal is true: the pool was closed or inactive.
//! - **O7 rest**: when nobody has anything to do, no owed work lies about, nobody who was served is asleep, and nobody waits for what
//!   could be had.
//! - **O8 end**: when the faults stop, the pool is back to full service within one back-off; when it is closed, nothing is left. No
//!   resource goes without a close.
//! - **O9 wakes**: the waker of the last poll of every pending acquire is queued in the pool once, or was woken since. No other is queued.
//!
//! [`play`] checks them at every step (`oracle.rs`, `outcome.rs`) and at the end (`finale.rs`). But whoever looks at a pool closes its trays:
//! so in most plays nobody looks at most steps, and clients come and go in a row. O9 is checked at every step, and whenever the pool calls
//! an observer or its manager.
//!
//! User code may come back into the pool from there, or from a waker (`meddle.rs`): to the pool that is another thread that comes between.

mod backend;
mod client;
mod doings;
mod faults;
mod finale;
mod knobs;
mod meddle;
mod oracle;
mod outcome;
mod panics;
mod plan;
mod scheduler;
mod waits;
mod wakes;
mod world;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use plan::Lie;
use plan::Plan;

/// What playing a seed came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// The seed.
    pub seed: u64,
    /// What happened, step by step: numbered lines with the virtual time, who, and what.
    pub story: String,
    /// How many steps the story has.
    pub steps: usize,
    /// The promise that was broken, if one was.
    pub broken: Option<String>,
}

impl Played {
    /// Panics with the story, if a promise was broken.
    ///
    /// # Panics
    /// That is what it is for.
    #[track_caller]
    pub fn assert_kept(&self) {
        assert!(self.broken.is_none(), "{self}");
    }
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.story)?;
        match &self.broken {
            None => write!(f, "seed {}: every promise was kept", self.seed),
            Some(broken) => write!(
                f,
                "seed {}: {broken}\nplay it again: cargo xtask sim --seed {}",
                self.seed, self.seed
            ),
        }
    }
}

/// Plays a seed.
///
/// ```
/// let played = cenote_testkit::sim::play(7);
/// played.assert_kept();
/// assert_eq!(played, cenote_testkit::sim::play(7));
/// ```
pub fn play(seed: u64) -> Played {
    play_plan(Plan::draw(seed, None))
}

/// Plays a seed in which one thing is wrong, to see whether an oracle notices.
pub fn play_lie(seed: u64, lie: Lie) -> Played {
    play_plan(Plan::draw(seed, Some(lie)))
}

fn play_plan(plan: Plan) -> Played {
    let seed = plan.seed;
    let sim = world::Sim::new(plan);
    let watch = panics::Watch::begin(&sim);
    // A runtime that ends with a broken pool inside may panic once more.
    let ended = catch_unwind(AssertUnwindSafe(|| scheduler::run(&sim)));
    let panicked = watch
        .end()
        .or_else(|| ended.err().map(|_| "it panicked".to_owned()));
    let (story, steps, broken) = sim.conclude();
    Played {
        seed,
        story,
        steps,
        broken: broken.or_else(|| panicked.map(|text| format!("a panic: {text}"))),
    }
}
