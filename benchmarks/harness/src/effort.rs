//! How much is done for one figure.

use std::time::Duration;

/// How much is done for one figure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// For a first look.
    pub quick: bool,
    /// Of the order of the rounds, and of the storm.
    pub seed: u64,
}

impl Effort {
    /// How many rounds each pool plays that counts trips.
    pub fn rounds(self) -> usize {
        if self.quick { 9 } else { 31 }
    }

    /// About how long such a round takes.
    pub fn round(self) -> Duration {
        Duration::from_millis(if self.quick { 3 } else { 10 })
    }

    /// How many rounds of what takes longer.
    pub fn long_rounds(self) -> usize {
        if self.quick { 1 } else { 5 }
    }

    /// How many rounds each pool plays on a real database. They are never quiet, so there must be some.
    pub fn sql_rounds(self) -> usize {
        if self.quick { 3 } else { 5 }
    }

    /// How long such a round is watched.
    pub fn sql_round(self) -> Duration {
        Duration::from_millis(if self.quick { 50 } else { 200 })
    }

    /// How many rounds each pool plays at one point of growth. Each has some stretches.
    pub fn growth_rounds(self) -> usize {
        if self.quick { 3 } else { 11 }
    }

    /// How long such a stretch lasts.
    pub fn growth_stretch(self) -> Duration {
        Duration::from_millis(if self.quick { 2 } else { 4 })
    }

    /// How many rounds each pool plays with one line of waiters.
    pub fn growth_lines(self) -> usize {
        if self.quick { 1 } else { 3 }
    }

    /// How many trips such a line makes, all together.
    pub fn growth_trips(self) -> usize {
        if self.quick { 100_000 } else { 200_000 }
    }

    /// How long a crowd is watched, and how long idle pools are.
    pub fn watch(self) -> Duration {
        Duration::from_millis(if self.quick { 300 } else { 1000 })
    }
}
