//! The state of a fleet, seen by one member.

use std::cmp::Reverse;
use std::fmt;

use crate::cell::{Cell, MemberId, Name, Record};
use crate::step::Step;

/// What one member knew of its fleet after its last round. Counters never go backwards.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote_fleet::{Fleet, Memory};
///
/// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
/// let fleet = Fleet::on(Memory::new()).capacity(10).floor(3).join(&pool).await?;
///
/// let status = fleet.status();
/// assert_eq!((status.capacity, status.granted, status.share), (10, 3, 3));
/// assert_eq!(status.mine().map(|mine| (mine.has, mine.floor)), Some((3, 3)));
/// assert!(status.learned && !status.disputed && status.last_error.is_none());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FleetStatus {
    /// The name of this member.
    pub id: MemberId,
    /// The capacity of the group.
    pub capacity: u32,
    /// The sessions that all members may have, together.
    pub granted: u32,
    /// The connections that the pool of this member may have.
    pub share: u32,
    /// False while the members of a lost cell claim what they hold, and no member grows.
    pub learned: bool,
    /// The members were told different capacities. The lowest counts.
    pub disputed: bool,
    /// The members, by id.
    pub members: Vec<MemberStatus>,
    /// Swaps of this member that succeeded.
    pub swaps: u64,
    /// Swaps that were lost to another member.
    pub lost_swaps: u64,
    /// How often this member has ended the sessions of a silent one.
    pub fences: u64,
    /// How often this member found itself fenced or buried.
    pub fenced: u64,
    /// How often the lease of this member was over before it could renew it.
    pub lapses: u64,
    /// How often this member lost its control connection. Its pool opened nothing meanwhile.
    pub losses: u64,
    /// Rounds that failed.
    pub failures: u64,
    /// Why the last round failed. `None` after one that succeeded.
    pub last_error: Option<String>,
}

/// One member of a fleet. All numbers of sessions include the overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberStatus {
    /// Tells it from all others.
    pub id: MemberId,
    /// What people call it: [`Settings::name`](crate::Settings::name).
    pub name: Name,
    /// The sessions that it may have.
    pub has: u32,
    /// The sessions that it has use for.
    pub wants: u32,
    /// The sessions that come before the demand of all members.
    pub floor: u32,
    /// Its part of what is left beyond the floors.
    pub weight: u32,
    /// It is silent, and its sessions are being ended.
    pub fenced: bool,
}

impl FleetStatus {
    pub(crate) fn new(id: MemberId) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }

    /// Returns the record of this member, unless it was buried.
    pub fn mine(&self) -> Option<&MemberStatus> {
        self.members.iter().find(|member| member.id == self.id)
    }

    /// Returns whether the last round reached the engine and ended well.
    pub fn is_reached(&self) -> bool {
        self.last_error.is_none()
    }

    /// A round has ended. `cell` is the value that the engine has now.
    pub(crate) fn round_ended(&mut self, cell: &Cell) {
        let capacities = || cell.members.values().map(|record| record.capacity);
        self.capacity = cell.capacity();
        self.granted = cell.granted();
        self.learned = cell.learned;
        self.disputed = capacities().min() != capacities().max();
        self.members = cell.members.iter().map(MemberStatus::of).collect();
        self.last_error = None;
    }

    pub(crate) fn decided(&mut self, step: &Step) {
        self.fences += step.orders.fence.len() as u64;
        self.fenced += u64::from(step.orders.invalidate);
    }

    pub(crate) fn failed(&mut self, error: &dyn std::fmt::Display) {
        self.failures += 1;
        self.last_error = Some(error.to_string());
    }

    /// Takes the cap that is in force.
    pub(crate) fn capped(&mut self, share: u32, lapsed: bool) {
        self.share = share;
        self.lapses += u64::from(lapsed);
    }
}

/// What a program that is no member can say of a fleet: its capacity, and its members.
impl From<&Cell> for FleetStatus {
    fn from(cell: &Cell) -> Self {
        let mut status = Self::default();
        status.round_ended(cell);
        status
    }
}

/// How many members the one-line text names.
const MEMBERS_SHOWN: usize = 3;

impl fmt::Display for FleetStatus {
    /// One line: how much is out, what this member has, and which others have most.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (granted, capacity, share) = (self.granted, self.capacity, self.share);
        let here = self.mine().map_or(0, |mine| mine.has);
        write!(
            f,
            "fleet: {granted} of {capacity} out; here {here} (share {share})"
        )?;
        let others = self.members.iter().filter(|member| member.id != self.id);
        let mut others: Vec<_> = others.collect();
        others.sort_by_key(|member| Reverse(member.has));
        for (nth, member) in others.iter().take(MEMBERS_SHOWN).enumerate() {
            let before = if nth == 0 { "; most: " } else { ", " };
            write!(f, "{before}{} {}", member.name, member.has)?;
        }
        if !self.learned {
            f.write_str("; the cell was lost and is being learned")?;
        }
        match &self.last_error {
            Some(error) => write!(f, "; {error}"),
            None => Ok(()),
        }
    }
}

impl MemberStatus {
    fn of((id, record): (&MemberId, &Record)) -> Self {
        Self {
            id: *id,
            name: record.name,
            has: record.has,
            wants: record.wants,
            floor: record.floor,
            weight: record.weight,
            fenced: record.fenced,
        }
    }
}
