//! What a seed decides before the play begins.

use cenote_fleet::Name;
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
    /// A member without a control connection passes for one without sessions.
    BuriedUncounted,
    /// A member goes on opening after it has lost its control connection.
    OpensWithoutControl,
    /// A floor that is used while the engine is away is not kept.
    FloorNotKept,
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

/// At most so many processes run at once.
pub(crate) const MOST: usize = 6;

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
    /// Members go on with their floor while the engine is away. So many are alive at once.
    pub(crate) members_max: u32,
}

impl Plan {
    pub(crate) fn draw(rng: &mut Rng, bug: Option<Bug>) -> Self {
        let sights = [Sight::Counted, Sight::Blind, Sight::Quiet, Sight::Walled];
        // A wall would hide the effect of a bug.
        let sight = match bug {
            Some(Bug::BuriedUncounted | Bug::OpensWithoutControl) => Sight::Counted,
            Some(Bug::FloorNotKept) => Sight::Blind,
            Some(_) => sights[rng.usize(..3)],
            None => sights[rng.usize(..4)],
        };
        let is_blind = matches!(sight, Sight::Blind | Sight::Quiet);
        let keeps_floors = is_blind && (rng.bool() || bug == Some(Bug::FloorNotKept));
        let members_max = if keeps_floors { MOST as u32 } else { 0 };
        // A quiet member always renews its lease in time.
        let worst = if sight == Sight::Quiet { 2 } else { 3 };
        Self {
            bug,
            sight,
            // A floor and an overhead of one, for each member.
            capacity: rng.u32(8.max(2 * members_max)..24),
            processes: rng.usize(2..5),
            lost: [0, 10, 100][rng.usize(..worst)],
            slow: [20, 100, 500][rng.usize(..worst)],
            calm: [20, 60, 200][rng.usize(..3)],
            members_max,
        }
    }

    pub(crate) fn terms(&self, rng: &mut Rng) -> Terms {
        let canceller = u32::from(self.bug != Some(Bug::CancellerNotCounted));
        Terms {
            name: Name::new("process").unwrap(),
            capacity: self.capacity,
            floor: 1,
            weight: [1, 1, 2][rng.usize(..3)],
            overhead: canceller + u32::from(self.can_count()),
            ttl: TTL,
            control: self.can_count(),
            members_max: match self.bug {
                Some(Bug::FloorNotKept) => 1,
                _ => self.members_max,
            },
        }
    }

    /// The engine is the server of the connections: it counts them, and members have a control
    /// connection to it.
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
