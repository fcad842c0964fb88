//! How much is done for one figure.

use std::time::Duration;

use crate::harness::processes;

/// How much is done for one figure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Fewer and shorter rounds, for a first look.
    pub quick: bool,
    /// Seeds the order of the rounds, and the storm.
    pub seed: u64,
    /// This process is one of several that play a scenario, so it plays its share of the rounds.
    pub is_share: bool,
}

impl Effort {
    /// Returns how many rounds of trips each pool plays.
    pub fn rounds(self) -> usize {
        let all: usize = if self.quick { 9 } else { 31 };
        if self.is_share {
            return all.div_ceil(processes::COUNT).max(3);
        }
        all
    }

    /// Returns about how long a round of trips takes.
    pub fn round(self) -> Duration {
        Duration::from_millis(if self.quick { 3 } else { 10 })
    }

    /// Returns how many rounds of a longer scenario each pool plays.
    pub fn long_rounds(self) -> usize {
        if self.quick { 1 } else { 5 }
    }

    /// Returns how many rounds each pool plays on a real database. They are never quiet, so several
    /// are needed.
    pub fn sql_rounds(self) -> usize {
        if self.quick { 3 } else { 5 }
    }

    /// Returns how long a round on a real database lasts.
    pub fn sql_round(self) -> Duration {
        Duration::from_millis(if self.quick { 50 } else { 200 })
    }

    /// Returns how many rounds each pool plays at one point of growth. Each round has several
    /// stretches.
    pub fn growth_rounds(self) -> usize {
        if self.quick { 3 } else { 11 }
    }

    /// Returns how long a stretch lasts.
    pub fn growth_stretch(self) -> Duration {
        Duration::from_millis(if self.quick { 2 } else { 4 })
    }

    /// Returns how many rounds each pool plays with one queue of waiters.
    pub fn queue_rounds(self) -> usize {
        if self.quick { 1 } else { 3 }
    }

    /// Returns how many trips the waiters of a queue make together.
    pub fn queue_trips(self) -> usize {
        if self.quick { 100_000 } else { 200_000 }
    }

    /// Returns how long a crowd or idle pools are watched.
    pub fn watch(self) -> Duration {
        Duration::from_millis(if self.quick { 300 } else { 1000 })
    }
}
