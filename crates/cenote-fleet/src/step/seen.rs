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
    members: BTreeMap<MemberId, Sign>,
    /// Tags of sessions that belong to no member, and when they were first seen.
    strays: BTreeMap<MemberId, Duration>,
    counts: Option<Counts>,
}

/// The signs of life of one member.
#[derive(Clone, Copy, Debug)]
struct Sign {
    /// Its last beat, and when that was first seen.
    beat: (u64, Duration),
    /// Sessions of it were counted at least once.
    was_counted: bool,
    /// Since when no session of it is counted.
    gone: Option<Duration>,
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
        self.members.retain(|id, _| cell.members.contains_key(id));
        for (id, record) in &cell.members {
            let count = self.count(*id);
            let sign = self.members.entry(*id).or_insert(Sign {
                beat: (record.beat, now),
                was_counted: false,
                gone: None,
            });
            if sign.beat.0 != record.beat {
                sign.beat = (record.beat, now);
                sign.gone = None;
            }
            sign.was_counted |= count > 0;
            let is_gone = sign.was_counted && count == 0;
            sign.gone = is_gone.then(|| sign.gone.unwrap_or(now));
        }
        let tags = self.stray_counts(cell).map(|(id, _)| id);
        let since = |id| self.strays.get(&id).copied().unwrap_or(now);
        self.strays = tags.map(|id| (id, since(id))).collect();
    }

    pub(super) fn has_watched_epoch(&self, now: Duration, long_enough: Duration) -> bool {
        let since = self.epoch.map_or(now, |(_, since)| since);
        now.saturating_sub(since) >= long_enough
    }

    /// Returns for how long the beat of a member has not changed.
    pub(super) fn silent_for(&self, id: MemberId, now: Duration) -> Duration {
        let since = self.members.get(&id).map_or(now, |sign| sign.beat.1);
        now.saturating_sub(since)
    }

    /// Returns for how long no session of a member was counted, between two counts: from the end of
    /// the first to the begin of the last. The member did not beat meanwhile. It is `None` for a
    /// member that has sessions, or whose sessions were never seen: they may have another role.
    pub(super) fn gone_for(&self, id: MemberId, asked: Duration) -> Option<Duration> {
        let gone = self.members.get(&id)?.gone?;
        Some(asked.saturating_sub(gone))
    }

    /// Returns the tags of sessions that have belonged to no member for so long.
    pub(super) fn strays_for(&self, now: Duration, long: Duration) -> Vec<MemberId> {
        let old = |since: Duration| now.saturating_sub(since) >= long;
        let strays = self.strays.iter().filter(|(_, since)| old(**since));
        strays.map(|(id, _)| *id).collect()
    }

    pub(super) fn counts(&self) -> Option<&Counts> {
        self.counts.as_ref()
    }

    /// Returns how many sessions of a member were counted; zero if they cannot be counted.
    pub(super) fn count(&self, id: MemberId) -> u32 {
        let count = self.counts().and_then(|counts| counts.get(&id));
        count.copied().unwrap_or(0)
    }

    /// Returns the sessions that were counted and belong to no member, by their tags.
    pub(super) fn stray_counts(&self, cell: &Cell) -> impl Iterator<Item = (MemberId, u32)> {
        let counts = self.counts().into_iter().flatten();
        let strays = counts.filter(|(id, _)| !cell.members.contains_key(id));
        strays.map(|(id, count)| (*id, *count))
    }
}
