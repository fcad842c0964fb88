//! A watcher: a future that wants to know whenever a resource comes or goes, as `warm` and `close_within` do.

use std::task::Context;

use crate::ledger::WatchNo;
use crate::manager::Manager;
use crate::shared::Shared;

/// It has one waker in the ledger at most.
pub(crate) struct Watcher<'a, M: Manager + 'static> {
    shared: &'a Shared<M>,
    number: Option<WatchNo>,
}

impl<'a, M: Manager + 'static> Watcher<'a, M> {
    pub(crate) fn new(shared: &'a Shared<M>) -> Self {
        Self {
            shared,
            number: None,
        }
    }

    /// Wakes the task of this poll at the next coming or going.
    pub(crate) fn watch(&mut self, context: &Context<'_>) {
        let waker = context.waker().clone();
        let before = self.shared.ledger().watch(&mut self.number, waker);
        drop(before);
    }
}

impl<M: Manager + 'static> Drop for Watcher<'_, M> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let before = self.shared.ledger().unwatch(number);
            drop(before);
        }
    }
}
