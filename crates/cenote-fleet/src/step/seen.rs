//! What a member has seen of the others, and when, by its own clock.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cell::{Cell, Epoch, MemberId};

/// The sessions at the server, by the tag of their member.
pub type Counts = BTreeMap<MemberId, u32>;

/// What a member has seen. It holds no wall clock: times are on the member's own clock, which only
/// has to run at about the rate of the others.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The present epoch, and when it was first seen.
    epoch: Option<(Epoch, Duration)>,
    /// The last beat of each member, and when it was first seen.
    beats: BTreeMap<MemberId, (u64, Duration)>,
    counts: Option<Counts>,
}

impl Seen {
    /// Takes a count of the sessions at the server. It must be taken *after* the cell was read that
    /// the next [`step`](super::step) is given. `None` means that they cannot be counted.
    pub fn counted(&mut self, counts: Option<Counts>) {
        self.counts = counts;
    }

    pub(super) fn look(&mut self, now: Duration, cell: &Cell) {
        if self.epoch.is_none_or(|(epoch, _)| epoch != cell.epoch) {
            self.epoch = Some((cell.epoch, now));
        }
        self.beats.retain(|id, _| cell.members.contains_key(id));
        for (id, record) in &cell.members {
            let seen = self.beats.entry(*id).or_insert((record.beat, now));
            if seen.0 != record.beat {
                *seen = (record.beat, now);
            }
        }
    }

    pub(super) fn has_watched_epoch(&self, now: Duration, long_enough: Duration) -> bool {
        let since = self.epoch.map_or(now, |(_, since)| since);
        now.saturating_sub(since) >= long_enough
    }

    /// Returns for how long the beat of a member has not changed.
    pub(super) fn silent_for(&self, id: MemberId, now: Duration) -> Duration {
        let since = self.beats.get(&id).map_or(now, |(_, since)| *since);
        now.saturating_sub(since)
    }

    pub(super) fn counts(&self) -> Option<&Counts> {
        self.counts.as_ref()
    }

    /// Returns how many sessions of a member were counted; zero if they cannot be counted.
    pub(super) fn count(&self, id: MemberId) -> u32 {
        let count = self.counts().and_then(|counts| counts.get(&id));
        count.copied().unwrap_or(0)
    }

    /// Returns how many sessions were counted that belong to no member.
    pub(super) fn strays(&self, cell: &Cell) -> u32 {
        let counts = self.counts().into_iter().flatten();
        let strays = counts.filter(|(id, _)| !cell.members.contains_key(id));
        super::sum(strays.map(|(_, count)| *count))
    }
}
