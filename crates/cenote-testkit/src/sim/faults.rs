//! The backend's faults: which callbacks go wrong, how often, and how.

use std::time::Duration;

use fastrand::Rng;

use super::plan::{millis, one_of};
use crate::backend::{Call, Gate};

#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    /// How many of 100 calls do something else than pass.
    trouble: u8,
    /// If set, only this call goes wrong.
    only: Option<Call>,
    /// If set, every fault is this one.
    always: Option<Gate>,
    longest: u64,
}

impl Faults {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self {
            trouble: one_of(rng, &[0, 5, 25, 60]),
            only: (rng.u8(0..3) == 0).then(|| one_of(rng, &Call::ALL)),
            always: (rng.u8(0..3) == 0).then(|| any_gate(rng, 1000)),
            longest: one_of(rng, &[3, 50, 3000]),
        }
    }

    /// Draws what the next call of `call` does.
    pub(super) fn gate(&self, call: Call, rng: &mut Rng) -> Gate {
        let spared = self.only.is_some_and(|only| only != call);
        if spared || rng.u8(0..100) >= self.trouble {
            return Gate::Pass;
        }
        self.always.unwrap_or_else(|| any_gate(rng, self.longest))
    }
}

fn any_gate(rng: &mut Rng, longest: u64) -> Gate {
    match rng.u8(0..8) {
        0..=1 => Gate::Fail,
        2 => Gate::Hang,
        3 => Gate::Panic,
        4 => Gate::Slow(Duration::ZERO),
        _ => Gate::Slow(millis(rng, longest)),
    }
}
