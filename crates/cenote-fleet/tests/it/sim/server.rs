//! The model of a server: its sessions by tag, and the cell that it keeps.

use std::collections::{BTreeMap, BTreeSet};

use cenote_fleet::protocol::{Cell, Counts, Epoch, MemberId};

#[derive(Debug)]
pub(crate) struct Server {
    /// The server's own limit, if it has one.
    wall: Option<u32>,
    sessions: BTreeMap<u64, MemberId>,
    /// The control connections among the sessions.
    controls: BTreeSet<u64>,
    opened: u64,
    pub(crate) refused: u32,
    /// The most sessions that there were at once.
    pub(crate) peak: u32,
    pub(crate) origin: u64,
    pub(crate) cell: Option<Cell>,
    pub(crate) version: u64,
    /// An older cell, for a restore.
    snapshot: Option<Cell>,
}

impl Server {
    pub(crate) fn new(wall: Option<u32>) -> Self {
        let epoch = Epoch {
            origin: 1,
            nonce: 0,
        };
        Self {
            wall,
            sessions: BTreeMap::new(),
            controls: BTreeSet::new(),
            opened: 0,
            refused: 0,
            peak: 0,
            origin: 1,
            cell: Some(Cell::new(epoch)),
            version: 0,
            snapshot: None,
        }
    }

    pub(crate) fn open(&mut self, member: MemberId) -> Option<u64> {
        if self.wall.is_some_and(|wall| self.count() >= wall) {
            self.refused += 1;
            return None;
        }
        self.opened += 1;
        self.sessions.insert(self.opened, member);
        self.peak = self.peak.max(self.count());
        Some(self.opened)
    }

    /// Opens a control connection. A refused one does not count: its process tries again.
    pub(crate) fn open_control(&mut self, member: MemberId) -> Option<u64> {
        let refused = self.refused;
        let session = self.open(member);
        self.refused = refused;
        self.controls.extend(session);
        session
    }

    /// Returns the members with a control connection.
    pub(crate) fn controlled(&self) -> impl Iterator<Item = MemberId> {
        let controls = self.controls.iter();
        controls.filter_map(|session| self.sessions.get(session).copied())
    }

    pub(crate) fn end(&mut self, session: u64) {
        self.sessions.remove(&session);
    }

    pub(crate) fn end_all_of(&mut self, member: MemberId) {
        self.sessions.retain(|_, owner| *owner != member);
    }

    pub(crate) fn is_alive(&self, session: u64) -> bool {
        self.sessions.contains_key(&session)
    }

    pub(crate) fn count(&self) -> u32 {
        self.sessions.len() as u32
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::new();
        for member in self.sessions.values() {
            *counts.entry(*member).or_default() += 1;
        }
        counts
    }

    pub(crate) fn swap(&mut self, version: u64, cell: Cell) -> bool {
        let is_won = version == self.version;
        if is_won {
            self.cell = Some(cell);
            self.version += 1;
        }
        is_won
    }

    /// Remembers the cell for a later restore.
    pub(crate) fn back_up(&mut self) {
        self.snapshot = self.cell.clone();
    }

    /// All is lost. Its clients cannot tell the new versions from the old ones by their order.
    pub(crate) fn wipe(&mut self, cell: Option<Cell>) {
        self.cell = cell;
        self.version += 1;
    }

    /// An old state comes back. The server knows that its history is another one.
    pub(crate) fn restore(&mut self) {
        self.origin += 1;
        let cell = self.snapshot.clone();
        self.wipe(cell);
    }
}
