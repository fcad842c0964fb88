//! What has changed in a fleet between two looks at it.

use std::fmt;

use crate::cell::{MemberId, Name};
use crate::status::FleetStatus;

/// A change in a fleet, made by [`FleetStatus::changes_since`]. Its text is a line for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The pool of this member may have more connections than before, or fewer.
    Share {
        /// Before.
        from: u32,
        /// Now.
        to: u32,
    },
    /// The group has another capacity.
    Capacity {
        /// Before.
        from: u32,
        /// Now.
        to: u32,
    },
    /// A member has joined.
    Joined(MemberId, Name),
    /// A member has left.
    Left(MemberId, Name),
    /// A member is silent, and its sessions are being ended.
    Fenced(MemberId, Name),
    /// A silent member was buried, and its share is free.
    Buried(MemberId, Name),
    /// Whether the members were told different capacities.
    Disputed(bool),
    /// Whether the cell is learned. While it is not, no member grows.
    Learned(bool),
    /// The lease of this member was over before it could renew it. Its pool is stopped.
    LeaseOver,
    /// The control connection of this member was lost. Its pool opens nothing until the share was
    /// renewed over a new one.
    LineLost,
    /// The rounds of this member fail.
    EngineAway {
        /// Why.
        error: String,
    },
    /// The rounds of this member succeed again.
    EngineBack,
}

impl FleetStatus {
    /// Returns what has changed since an earlier status of the same member. Changes that were
    /// undone in between are not seen, except for a lease that was over and a lost connection.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_fleet::{Change, Fleet, Memory};
    ///
    /// # let open = async || Ok::<_, &str>(());
    /// let engine = Memory::new();
    /// let orders = cenote::Pool::from_fn(open).build()?;
    /// let reports = cenote::Pool::from_fn(open).build()?;
    /// let mut first = Fleet::on(engine.clone()).capacity(10).join(&orders).await?;
    /// let before = first.status();
    /// let second = Fleet::on(engine).capacity(10).join(&reports).await?;
    ///
    /// let mut now = first.status();
    /// while now.members.len() < 2 {
    ///     now = first.changed().await.unwrap();
    /// }
    /// let changes = now.changes_since(&before);
    /// let name = second.status().mine().unwrap().name;
    /// assert!(changes.contains(&Change::Joined(second.id(), name)));
    /// # Ok(()) }
    /// ```
    pub fn changes_since(&self, earlier: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        let numbers = |from: u32, to: u32| (from != to).then_some((from, to));
        let share = numbers(earlier.share, self.share);
        changes.extend(share.map(|(from, to)| Change::Share { from, to }));
        let capacity = numbers(earlier.capacity, self.capacity);
        changes.extend(capacity.map(|(from, to)| Change::Capacity { from, to }));
        let is_fenced = |status: &Self, id| {
            let mut members = status.members.iter();
            let found = members.find(|member| member.id == id);
            found.map(|member| member.fenced)
        };
        for member in &self.members {
            let (id, name) = (member.id, member.name);
            let before = is_fenced(earlier, id);
            changes.extend(before.is_none().then_some(Change::Joined(id, name)));
            let is_new = member.fenced && before != Some(true);
            changes.extend(is_new.then_some(Change::Fenced(id, name)));
        }
        for member in &earlier.members {
            let (id, name) = (member.id, member.name);
            if is_fenced(self, id).is_none() {
                let is_buried = member.fenced;
                changes.push(if is_buried {
                    Change::Buried(id, name)
                } else {
                    Change::Left(id, name)
                });
            }
        }
        let flags = |from: bool, to: bool| (from != to).then_some(to);
        changes.extend(flags(earlier.disputed, self.disputed).map(Change::Disputed));
        changes.extend(flags(earlier.learned, self.learned).map(Change::Learned));
        changes.extend((self.lapses > earlier.lapses).then_some(Change::LeaseOver));
        changes.extend((self.losses > earlier.losses).then_some(Change::LineLost));
        match (&earlier.last_error, &self.last_error) {
            (None, Some(error)) => changes.push(Change::EngineAway {
                error: error.clone(),
            }),
            (Some(_), None) => changes.push(Change::EngineBack),
            _ => {}
        }
        changes
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share { from, to } => write!(f, "the share went from {from} to {to}"),
            Self::Capacity { from, to } => write!(f, "the capacity went from {from} to {to}"),
            Self::Joined(_, name) => write!(f, "{name} has joined"),
            Self::Left(_, name) => write!(f, "{name} has left"),
            Self::Fenced(_, name) => write!(f, "{name} is silent and fenced"),
            Self::Buried(_, name) => write!(f, "{name} was buried"),
            Self::Disputed(true) => {
                f.write_str("members say different capacities: the lowest counts")
            }
            Self::Disputed(false) => f.write_str("all members say one capacity again"),
            Self::Learned(true) => f.write_str("the cell is learned"),
            Self::Learned(false) => f.write_str("the cell was lost: no member grows for a TTL"),
            Self::LeaseOver => f.write_str("the lease was over: the pool is stopped"),
            Self::LineLost => {
                f.write_str("the control connection was lost: the pool opens nothing")
            }
            Self::EngineAway { error } => write!(f, "the engine is away: {error}"),
            Self::EngineBack => f.write_str("the engine is back"),
        }
    }
}
