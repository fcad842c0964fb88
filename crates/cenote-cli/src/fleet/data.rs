//! What is shown of a fleet.

use std::collections::BTreeMap;

use cenote_fleet::FleetStatus;
use cenote_fleet::protocol::{Cell, MemberId};
use serde::Serialize;

use crate::out::Table;

/// The sessions of one member that the server has, and the name of its process.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    pub(super) count: u64,
    pub(super) name: Option<String>,
}

/// A fleet at one moment.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Fleet {
    pub(super) group: String,
    pub(super) capacity: u32,
    /// The sessions that all members have been granted.
    pub(super) granted: u32,
    /// The sessions that all members have use for.
    pub(super) wanted: u32,
    /// The sessions that the server has, of members and of strays.
    pub(super) sessions: u64,
    /// Of those, the sessions of processes that are no members.
    pub(super) strays: u64,
    pub(super) learned: bool,
    pub(super) disputed: bool,
    pub(super) members: Vec<Member>,
    #[serde(skip)]
    pub(super) status: FleetStatus,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Member {
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) has: u32,
    pub(super) wants: u32,
    pub(super) floor: u32,
    pub(super) weight: u32,
    /// The sessions that the server has.
    pub(super) sessions: u64,
    pub(super) fenced: bool,
}

/// The titles of the table, with `>` before those of numbers.
pub(super) const TITLES: [&str; 8] = [
    "member",
    "name",
    ">has",
    ">wants",
    ">sessions",
    ">floor",
    ">weight",
    "state",
];

impl Fleet {
    pub(super) fn new(group: &str, cell: &Cell, counts: &BTreeMap<MemberId, Sessions>) -> Self {
        let status = FleetStatus::from(cell);
        let nothing = Sessions::default();
        let members = status.members.iter().map(|member| {
            let sessions = counts.get(&member.id).unwrap_or(&nothing);
            Member {
                id: member.id.to_string(),
                name: sessions.name.clone(),
                has: member.has,
                wants: member.wants,
                floor: member.floor,
                weight: member.weight,
                sessions: sessions.count,
                fenced: member.fenced,
            }
        });
        let strays = counts
            .iter()
            .filter(|(id, _)| !cell.members.contains_key(id));
        Self {
            group: group.to_owned(),
            capacity: status.capacity,
            granted: status.granted,
            wanted: status.members.iter().map(|member| member.wants).sum(),
            sessions: counts.values().map(|sessions| sessions.count).sum(),
            strays: strays.map(|(_, sessions)| sessions.count).sum(),
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
        let mut line = format!(
            "{group}: {granted} of {capacity} granted, {wanted} wanted, {sessions} sessions, \
             {members} members"
        );
        if *strays > 0 {
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
            self.id.clone(),
            self.name.clone().unwrap_or_else(|| "-".to_owned()),
            self.has.to_string(),
            self.wants.to_string(),
            self.sessions.to_string(),
            self.floor.to_string(),
            self.weight.to_string(),
            state.to_owned(),
        ]
    }
}
