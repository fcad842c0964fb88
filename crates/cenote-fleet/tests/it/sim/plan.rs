//! What a seed decides before the play begins.

use cenote_fleet::protocol::Terms;
use fastrand::Rng;

/// A bug that the harness plants, by lying to the protocol or by misreading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A member reports a connection as closed before it is.
    HasBeforeClosing,
    /// A wiped cell passes for a new one.
    NoLearning,
    /// The time is the wall clock, which jumps.
    WallClock,
    /// A swap that was lost passes for one that succeeded.
    LostSwapIgnored,
    /// The canceller's session is not part of the overhead.
    CancellerNotCounted,
}

/// How the sessions at the server are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// They are counted and can be ended. Processes are stopped, but not in the middle of an open.
    Counted,
    /// They are counted, and the server refuses more than the capacity. Processes are stopped at
    /// any time.
    Walled,
    /// They cannot be counted. No process is stopped, and leases are short.
    Blind,
    /// They cannot be counted, and leases are long. No process is stopped or cut off.
    Quiet,
}

/// The time in which a member must be heard of, in milliseconds.
pub(crate) const TTL: u32 = 10_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) bug: Option<Bug>,
    pub(crate) sight: Sight,
    pub(crate) capacity: u32,
    pub(crate) processes: usize,
    /// Of a thousand letters, so many are lost.
    pub(crate) lost: u32,
    /// The longest way of a letter, in milliseconds.
    pub(crate) slow: u64,
    /// How many ticks pass between two faults, on average.
    pub(crate) calm: u32,
}

impl Plan {
    pub(crate) fn draw(rng: &mut Rng, bug: Option<Bug>) -> Self {
        let sights = [Sight::Counted, Sight::Blind, Sight::Quiet, Sight::Walled];
        // A wall would hide the effect of a bug.
        let sight = sights[rng.usize(..if bug.is_some() { 3 } else { 4 })];
        // A quiet member always renews its lease in time.
        let worst = if sight == Sight::Quiet { 2 } else { 3 };
        Self {
            bug,
            sight,
            capacity: rng.u32(8..24),
            processes: rng.usize(2..5),
            lost: [0, 10, 100][rng.usize(..worst)],
            slow: [20, 100, 500][rng.usize(..worst)],
            calm: [20, 60, 200][rng.usize(..3)],
        }
    }

    pub(crate) fn terms(&self, rng: &mut Rng) -> Terms {
        let canceller = u32::from(self.bug != Some(Bug::CancellerNotCounted));
        Terms {
            capacity: self.capacity,
            floor: 1,
            weight: [1, 1, 2][rng.usize(..3)],
            overhead: canceller,
            ttl: TTL,
        }
    }

    pub(crate) fn can_count(&self) -> bool {
        matches!(self.sight, Sight::Counted | Sight::Walled)
    }

    /// How long a lease is out, in milliseconds.
    pub(crate) fn hold(&self, rng: &mut Rng) -> u64 {
        match self.sight {
            // Over before the others take the share of a member whose lease is over.
            Sight::Blind => rng.u64(..40),
            Sight::Counted | Sight::Walled | Sight::Quiet => rng.u64(..3000),
        }
    }
}
