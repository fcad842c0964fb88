//! The simulation: members on their own clocks, a server, and everything that goes wrong between
//! them, played from one number.
//!
//! Members run the real protocol. Their pools and the server are models, so that a play takes
//! milliseconds. Letters are slow, lost, or answered after their sender has given up. Processes are
//! stopped, cut off, killed and started, and lose their sessions while they live. The server is
//! wiped, or restored from an old state. Clocks run at 0.9 to 1.1 of the right rate, and wall
//! clocks jump.
//!
//! # Oracles
//! - **O1 cap**: the sessions at the server are never more than the capacity. Of the processes
//!   that have a control connection and no share, all but one are beside the budget.
//! - **O2 end**: when the faults have stopped and the silent members are buried, shares are max-min
//!   within three renewals of any change of demand.
//! - **O3 wall**: the server's own limit refuses no open, unless a process was stopped, or two
//!   without a share are connected at once: they join, or have just left.

mod finale;
mod plan;
mod pool;
mod process;
pub(crate) mod server;
mod trouble;
mod world;

pub(crate) use plan::Bug;
use world::World;

/// The result of a play.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Played {
    pub(crate) seed: u64,
    /// The promise that was broken.
    pub(crate) broken: Option<String>,
}

/// Plays a seed to its end, or to the first broken promise.
pub(crate) fn play(seed: u64, bug: Option<Bug>) -> Played {
    play_and_tell(seed, bug, None).0
}

/// Plays a seed, and returns what has happened.
pub(crate) fn story(seed: u64, bug: Option<Bug>) -> Vec<String> {
    let (_, story) = play_and_tell(seed, bug, Some(Vec::new()));
    story.unwrap_or_default()
}

fn play_and_tell(
    seed: u64,
    bug: Option<Bug>,
    story: Option<Vec<String>>,
) -> (Played, Option<Vec<String>>) {
    let mut world = World::new(seed, bug, story);
    let plan = world.plan;
    world.tell(|| format!("seed {seed}: {plan:?}"));
    let broken = world.run().err();
    let played = Played { seed, broken };
    (played, world.story)
}
