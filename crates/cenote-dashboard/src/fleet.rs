//! A fleet that the page shows, with its last minutes. It does not keep the member in the fleet.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cenote_fleet::{FleetStatus, FleetWatch};

use crate::history::{EVERY, MOST};
use crate::redact::redact;
use crate::view::{FleetHistoryView, FleetSampleView, FleetView, MemberView};
use crate::watched::Past;

/// More members than these are only counted.
const MOST_MEMBERS: usize = 100;

pub(crate) struct Panel {
    watch: FleetWatch,
    samples: Mutex<VecDeque<FleetSampleView>>,
}

impl Panel {
    pub(crate) fn new(watch: FleetWatch) -> Self {
        Self {
            watch,
            samples: Mutex::default(),
        }
    }

    /// Adds a sample to the history.
    pub(crate) fn sample(&self, time_ms: u64) {
        let status = self.watch.status();
        let sample = FleetSampleView {
            time_ms,
            capacity: status.capacity,
            granted: status.granted,
            share: status.share,
            wants: status.mine().map_or(0, |mine| mine.wants),
        };
        let mut samples = self.samples();
        if samples.len() == MOST {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// Returns whether it belongs to this pool, and the member has not left.
    pub(crate) fn is_of(&self, pool: u64) -> bool {
        self.watch.pool_number() == pool && !self.watch.has_left()
    }

    pub(crate) fn view(&self, past: Past) -> FleetView {
        let status = self.watch.status();
        let last = || self.samples().back().copied();
        FleetView {
            member: status.id.to_string(),
            capacity: status.capacity,
            granted: status.granted,
            share: status.share,
            learned: status.learned,
            disputed: status.disputed,
            error: status.last_error.as_deref().map(redact),
            members_hidden: status.members.len().saturating_sub(MOST_MEMBERS),
            members: members(&status),
            history: (past == Past::All).then(|| self.history()),
            sample: (past == Past::LastSample).then(last).flatten(),
        }
    }

    fn history(&self) -> FleetHistoryView {
        let mut view = FleetHistoryView {
            every_ms: u64::try_from(EVERY.as_millis()).unwrap_or(u64::MAX),
            ..FleetHistoryView::default()
        };
        for sample in &*self.samples() {
            view.time_ms.push(sample.time_ms);
            view.capacity.push(sample.capacity);
            view.granted.push(sample.granted);
            view.share.push(sample.share);
            view.wants.push(sample.wants);
        }
        view
    }

    fn samples(&self) -> MutexGuard<'_, VecDeque<FleetSampleView>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the members, the largest share first.
fn members(status: &FleetStatus) -> Vec<MemberView> {
    let mut members: Vec<_> = status.members.iter().collect();
    members.sort_by_key(|member| (std::cmp::Reverse(member.has), member.id));
    let shown = members.into_iter().take(MOST_MEMBERS);
    let view = shown.map(|member| MemberView {
        id: member.id.to_string(),
        name: member.name.to_string(),
        here: member.id == status.id,
        has: member.has,
        wants: member.wants,
        floor: member.floor,
        weight: member.weight,
        fenced: member.fenced,
    });
    view.collect()
}
