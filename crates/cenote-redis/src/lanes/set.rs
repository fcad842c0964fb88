//! The lanes that take commands, and the open that is under way. Plain data behind one lock.

use std::mem;
use std::sync::Arc;

use tokio::sync::watch;

use super::Outcome;
use super::lane::Lane;

#[derive(Default)]
pub(super) struct Set {
    lanes: Vec<Arc<Lane>>,
    /// The open that is under way, or has failed a moment ago.
    opening: Option<watch::Receiver<Outcome>>,
}

/// What a caller does next.
pub(super) struct Choice {
    /// The lane that it has entered.
    pub(super) lane: Option<Arc<Lane>>,
    /// An open that it must start, and where the outcome is reported.
    pub(super) start: Option<watch::Sender<Outcome>>,
    /// The open that it waits for if it has no lane.
    pub(super) wait: Option<watch::Receiver<Outcome>>,
}

impl Set {
    /// Enters the open lane with the fewest commands in flight. If fewer than `count` are open, an
    /// open is started, one at a time.
    pub(super) fn choose(&mut self, count: usize) -> Choice {
        let open = self.lanes.iter().filter(|lane| lane.is_open());
        let best = open.clone().min_by_key(|lane| lane.in_flight());
        let lane = best.cloned();
        if let Some(lane) = &lane {
            lane.enter();
        }
        let missing = open.count() < count;
        // A failed open holds the next one back, unless callers have no lane.
        let under_way = self.opening.as_ref().is_some_and(|opening| {
            let failed = opening.borrow().is_some();
            let gone = opening.has_changed().is_err();
            !gone && (!failed || lane.is_some())
        });
        let start = (missing && !under_way).then(|| {
            let (report, outcome) = watch::channel(None);
            self.opening = Some(outcome);
            report
        });
        let wait = self.opening.clone().filter(|_| lane.is_none());
        Choice { lane, start, wait }
    }

    pub(super) fn add(&mut self, lane: Arc<Lane>) {
        self.lanes.push(lane);
    }

    /// Notes that an open has succeeded.
    pub(super) fn opened(&mut self) {
        self.opening = None;
    }

    /// Allows the next open after a failed one.
    pub(super) fn forget(&mut self, report: &watch::Sender<Outcome>) {
        let same =
            |opening: &mut watch::Receiver<Outcome>| opening.same_channel(&report.subscribe());
        self.opening.take_if(same);
    }

    /// Takes a lane out, to be dropped after the lock is released.
    pub(super) fn take(&mut self, lane: &Arc<Lane>) -> Option<Arc<Lane>> {
        let at = self.lanes.iter().position(|other| Arc::ptr_eq(other, lane));
        at.map(|at| self.lanes.swap_remove(at))
    }

    pub(super) fn take_all(&mut self) -> Vec<Arc<Lane>> {
        mem::take(&mut self.lanes)
    }

    pub(super) fn in_flight(&self) -> Vec<usize> {
        self.lanes.iter().map(|lane| lane.in_flight()).collect()
    }
}
