//! The cell: the one small value that all members of a group read and swap.

mod encoding;
mod name;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

pub use encoding::DecodeError;
pub use name::Name;

/// Names a member: a process, or a pool in it. It is drawn at random when the member is made, and
/// it is the tag of the member's sessions at the server.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Names the history that a cell belongs to. A cell that was wiped gets another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Names the engine's own history. It changes when the engine may have lost writes.
    pub origin: u64,
    /// Drawn at random by the member that made the cell.
    pub nonce: u64,
}

/// What one member has, wants and may count on. All numbers of sessions include its overhead: the
/// sessions beside the pool, such as the control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Grows with every renewal. The others watch it to see that the member lives.
    pub beat: u64,
    /// For how many milliseconds the member may be silent before it is fenced.
    pub ttl: u32,
    /// The capacity of the group by this member's settings. The lowest of all members counts.
    pub capacity: u32,
    /// The sessions that the member gets before any other member gets more than its floor.
    pub floor: u32,
    /// The member's part of what is left, beside the weights of the others.
    pub weight: u32,
    /// The sessions that the member may have open. Its real sessions are never more.
    pub has: u32,
    /// The sessions that the member has use for.
    pub wants: u32,
    /// The member was silent for too long: its sessions are being ended.
    pub fenced: bool,
    /// What people call the member.
    pub name: Name,
}

/// The value of a group. [`encode`](Cell::encode) makes bytes of it, about 20 per member, and its
/// name.
///
/// ```
/// use cenote_fleet::protocol::{Cell, Epoch};
///
/// let cell = Cell::new(Epoch { origin: 1, nonce: 2 });
/// assert_eq!(Cell::decode(&cell.encode())?, cell);
/// # Ok::<_, cenote_fleet::protocol::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The history that this cell belongs to.
    pub epoch: Epoch,
    /// False while there may be members that have not claimed yet what they hold. No member grows
    /// meanwhile.
    pub learned: bool,
    /// The members, by id.
    pub members: BTreeMap<MemberId, Record>,
}

impl Cell {
    /// Makes a cell without members for a group that is known to be new. Its first member need not
    /// learn.
    pub fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            learned: true,
            members: BTreeMap::new(),
        }
    }

    /// Returns the capacity of the group: the lowest that a member was told.
    pub fn capacity(&self) -> u32 {
        let capacities = self.members.values().map(|record| record.capacity);
        capacities.min().unwrap_or(0)
    }

    /// Returns how many sessions all members may have open, together.
    pub fn granted(&self) -> u32 {
        let has = self.members.values().map(|record| record.has);
        has.fold(0, u32::saturating_add)
    }
}
