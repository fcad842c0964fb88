//! The knobs of the whole pool, and what the world has to know of each turn. The pool may call back
//! in the middle of a turn: so the world knows before the pool where a refusal may be told, and
//! after it where something must not be lent any more.

use std::fmt;

use cenote::Pool;

use super::backend::SimManager;
use super::meddle::Calling;
use super::world::Sim;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knob {
    Activate,
    Deactivate,
    Recover,
    Suspend,
    Resume,
    PauseUpkeep,
    ResumeUpkeep,
    Close,
}

pub(super) fn turn(sim: &Sim, pool: &Pool<SimManager>, who: impl fmt::Display, knob: Knob) {
    let told = match knob {
        Knob::Activate => "activates",
        Knob::Deactivate => "deactivates",
        Knob::Recover => "lets it recover",
        Knob::Suspend => "suspends",
        Knob::Resume => "resumes",
        Knob::PauseUpkeep => "pauses the upkeep",
        Knob::ResumeUpkeep => "resumes the upkeep",
        Knob::Close => "closes",
    };
    sim.note(who, told);
    let _calling = Calling::begin(sim);
    match knob {
        Knob::Activate => pool.activate(),
        Knob::Recover => pool.recover(),
        Knob::PauseUpkeep => pool.pause_upkeep(),
        Knob::ResumeUpkeep => pool.resume_upkeep(),
        Knob::Deactivate => {
            sim.world().deactivating += 1;
            pool.deactivate();
            sim.world().deactivating -= 1;
        }
        Knob::Suspend => {
            pool.suspend();
            sim.world().suspended = true;
        }
        Knob::Resume => {
            sim.world().suspended = false;
            pool.resume();
        }
        Knob::Close => {
            sim.world().closing_began = true;
            pool.close();
            sim.world().closed = true;
        }
    }
}

/// What existed when it shrank may stay until it comes home.
pub(super) fn resized(sim: &Sim, pool: &Pool<SimManager>, to: usize) {
    let status = pool.status();
    let mut world = sim.world();
    world.max_size = to;
    world.cap = to.max(status.total + status.closing);
    world.expect(
        status.idle == 0 || status.total <= to,
        format_args!("O1: shrunk to {to}, and {} are idle", status.idle),
    );
}
