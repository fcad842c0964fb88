//! The controls of the whole pool, with the notes that the world takes of each.
//!
//! The pool may call back in the middle of a control. So the world notes a control before the pool
//! does, if acquires may be refused from then on. It notes it after the pool, if resources must not
//! be lent from then on.

use std::fmt;

use super::kinds::SimPool;
use super::meddle::Calling;
use super::world::Sim;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knob {
    Reset,
    Trip,
    Probe,
    Suspend,
    Resume,
    PauseUpkeep,
    ResumeUpkeep,
    Close,
}

pub(super) fn turn(sim: &Sim, pool: &SimPool, who: impl fmt::Display, knob: Knob) {
    let told = match knob {
        Knob::Reset => "resets the breaker",
        Knob::Trip => "trips the breaker",
        Knob::Probe => "lets the breaker probe",
        Knob::Suspend => "suspends the pool",
        Knob::Resume => "resumes the pool",
        Knob::PauseUpkeep => "pauses the upkeep",
        Knob::ResumeUpkeep => "resumes the upkeep",
        Knob::Close => "closes the pool",
    };
    sim.note(who, told);
    let _calling = Calling::begin(sim);
    match knob {
        Knob::Reset => pool.reset(),
        Knob::Probe => pool.probe(),
        Knob::PauseUpkeep => pool.pause_upkeep(),
        Knob::ResumeUpkeep => pool.resume_upkeep(),
        Knob::Trip => {
            sim.world().trips += 1;
            pool.trip();
            sim.world().trips -= 1;
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

/// Notes a new `max_size`. Resources beyond it may stay until they come back.
pub(super) fn resized(sim: &Sim, pool: &SimPool, to: usize) {
    let status = pool.status();
    let mut world = sim.world();
    world.max_size = to;
    world.cap = to.max(status.total + status.closing);
    world.expect(
        status.idle == 0 || status.total <= to,
        format_args!("O1: shrunk to {to}, and {} are idle", status.idle),
    );
}
