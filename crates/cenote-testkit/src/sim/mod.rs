//! The simulation: a whole pool, its clients and its backend, played from one number.
//!
//! The simulation plays the real pool through its public interface and copies nothing of it. A seed
//! draws the configuration, the backend's faults, the clients' actions and the order in which the
//! clients are polled. The clock is tokio's, paused. So a seed is a schedule: playing it again
//! gives the same history, byte for byte.
//!
//! # Oracles
//! - **O1 cap**: the resources that exist or are being opened are never more than `max_size`. After
//!   a shrink they are never more than existed then, and that number only falls. No idle resource
//!   survives a shrink that leaves no room for it.
//! - **O2 one holder** per resource, and none while a callback runs on it.
//! - **O3 first come, first served**, and no barging.
//! - **O4 deadlines**: an acquire ends by its deadline plus the granularity of the timer, and times
//!   out no earlier. An acquire that is not polled is granted nothing after its deadline, and a
//!   grant that it did not claim by then is taken back.
//! - **O5 books**: a status adds up. Its counters agree with the clients' and with the observer's,
//!   and none goes backwards.
//! - **O6 fit**: the pool lends no resource that is dirty, broken, refused, unproven, invalidated,
//!   expired or used up. A pool that is closed, suspended or inactive lends nothing, and a
//!   recovering pool lends at most `probes`. A refusal is true: the pool was closed or inactive.
//! - **O7 rest**: when no task can run, no work is left undone, no served acquire is asleep, and no
//!   acquire waits for a resource that the pool could lend.
//! - **O8 end**: when the faults stop, the pool is back to full service within one back-off. When
//!   it is closed, nothing is left. Every resource is closed.
//! - **O9 wakes**: the waker of the last poll of every pending acquire is queued in the pool once,
//!   or was woken since. No other waker is queued.
//!
//! [`play`] checks them at every step (`oracle.rs`, `outcome.rs`) and at the end (`finale.rs`). But
//! an oracle that reads the status of a pool closes its trays. So in most plays the oracles skip
//! most steps, and clients come and go in a row. O9 needs no status: it is checked at every step,
//! and whenever the pool calls an observer or its manager.
//!
//! User code may call back into the pool from there, or from a waker (`meddle.rs`). To the pool
//! such a call is another thread that comes between two of its steps.

mod backend;
mod client;
mod doings;
mod faults;
mod finale;
mod kinds;
mod knobs;
mod meddle;
mod oracle;
mod outcome;
mod panics;
mod plan;
mod scheduler;
mod waits;
mod wakes;
mod want;
mod world;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use plan::Plan;
pub use plan::{Kind, Lie};

/// The result of playing a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// The seed.
    pub seed: u64,
    /// The kind of the pool.
    pub kind: Kind,
    /// The steps in order. Each is a numbered line with the virtual time, the actor and the action.
    pub story: String,
    /// How many steps the story has.
    pub steps: usize,
    /// The promise that was broken, if one was.
    pub broken: Option<String>,
}

impl Played {
    /// Asserts that every promise was kept.
    ///
    /// # Panics
    /// With the story, if a promise was broken.
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
                "seed {}: {broken}\nplay it again: cargo xtask sim{} --seed {}",
                self.seed,
                self.kind.flag(),
                self.seed
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
    play_plan(Plan::draw(seed, Kind::Threads, None))
}

/// Plays a seed with a pool of this kind.
pub fn play_kind(seed: u64, kind: Kind) -> Played {
    play_plan(Plan::draw(seed, kind, None))
}

/// Plays a seed in which one thing is wrong on purpose, to see whether an oracle notices.
pub fn play_lie(seed: u64, lie: Lie) -> Played {
    play_plan(Plan::draw(seed, Kind::Threads, Some(lie)))
}

fn play_plan(plan: Plan) -> Played {
    let (seed, kind) = (plan.seed, plan.kind);
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
        kind,
        story,
        steps,
        broken: broken.or_else(|| panicked.map(|text| format!("a panic: {text}"))),
    }
}
