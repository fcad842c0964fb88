//! What is shown of a fleet.

use cenote_fleet::{FleetStatus, Look};
use serde::Serialize;

use crate::out::Table;

/// A fleet at one moment.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Fleet {
    pub(super) group: String,
    pub(super) capacity: u32,
    /// The sessions that all members have been granted.
    pub(super) granted: u32,
    /// The sessions that all members have use for.
    pub(super) wanted: u32,
    /// The sessions that the server has, of members and of strays. `None` if the engine cannot
    /// count them.
    pub(super) sessions: Option<u32>,
    /// Of those, the sessions of processes that are no members.
    pub(super) strays: Option<u32>,
    pub(super) learned: bool,
    pub(super) disputed: bool,
    pub(super) members: Vec<Member>,
    #[serde(skip)]
    pub(super) status: FleetStatus,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Member {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) has: u32,
    pub(super) wants: u32,
    pub(super) floor: u32,
    pub(super) weight: u32,
    /// The sessions that the server has.
    pub(super) sessions: Option<u32>,
    pub(super) fenced: bool,
}

/// The titles of the table, with `>` before those of numbers.
pub(super) const TITLES: [&str; 8] = [
    "name",
    "member",
    ">has",
    ">wants",
    ">sessions",
    ">floor",
    ">weight",
    "state",
];

impl Fleet {
    pub(super) fn new(group: &str, look: &Look) -> Self {
        let status = FleetStatus::from(&look.cell);
        let counts = look.counts.as_ref();
        let members = status.members.iter().map(|member| Member {
            id: member.id.to_string(),
            name: member.name.to_string(),
            has: member.has,
            wants: member.wants,
            floor: member.floor,
            weight: member.weight,
            sessions: counts.map(|counts| counts.get(&member.id).copied().unwrap_or(0)),
            fenced: member.fenced,
        });
        let is_member = |id| look.cell.members.contains_key(id);
        let strays = counts.map(|counts| {
            let strays = counts.iter().filter(|(id, _)| !is_member(id));
            strays.map(|(_, count)| count).sum()
        });
        Self {
            group: group.to_owned(),
            capacity: status.capacity,
            granted: status.granted,
            wanted: status.members.iter().map(|member| member.wants).sum(),
            sessions: counts.map(|counts| counts.values().sum()),
            strays,
            learned: status.learned,
            disputed: status.disputed,
            members: members.collect(),
            status,
        }
    }

    /// One line about the whole.
    pub(super) fn summary(&self) -> String {
        let Self {
            group,
            granted,
            capacity,
            wanted,
            sessions,
            strays,
            ..
        } = self;
        let members = self.members.len();
        let mut line = format!("{group}: {granted} of {capacity} granted, {wanted} wanted");
        if let Some(sessions) = sessions {
            line += &format!(", {sessions} sessions");
        }
        line += &format!(", {members} members");
        if let Some(strays @ 1..) = strays {
            line += &format!(", {strays} sessions of no member");
        }
        if !self.learned {
            line += ", learning";
        }
        if self.disputed {
            line += ", members say different capacities";
        }
        line
    }

    pub(super) fn to_text(&self) -> String {
        let mut table = Table::new(&TITLES);
        for member in &self.members {
            table.row(member.cells());
        }
        format!("{}\n{}", self.summary(), table.show())
    }
}

impl Member {
    pub(super) fn cells(&self) -> [String; 8] {
        let state = match (self.fenced, self.wants > self.has) {
            (true, _) => "silent, fenced",
            (false, true) => "wants more",
            (false, false) => "content",
        };
        [
            self.name.clone(),
            self.id.clone(),
            self.has.to_string(),
            self.wants.to_string(),
            self.sessions
                .map_or("-".to_owned(), |count| count.to_string()),
            self.floor.to_string(),
            self.weight.to_string(),
            state.to_owned(),
        ]
    }
}
