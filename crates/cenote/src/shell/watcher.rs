//! A watcher: a future that is woken whenever a resource comes or goes, as in `warm` and
//! `close_within`.

use std::task::Context;

use super::kind::Kind;
use super::shared::Shared;
use crate::ledger::WatchNo;

/// It has one waker in the ledger at most.
pub(crate) struct Watcher<'a, K: Kind> {
    shared: &'a Shared<K>,
    number: Option<WatchNo>,
    /// It is woken by every change.
    close: bool,
}

impl<'a, K: Kind> Watcher<'a, K> {
    pub(crate) fn new(shared: &'a Shared<K>) -> Self {
        Self {
            shared,
            number: None,
            close: false,
        }
    }

    /// A watcher that is woken by every change of the pool's status.
    pub(crate) fn of_every_change(shared: &'a Shared<K>) -> Self {
        shared.ledger_off_trays().watch_closely(true);
        Self {
            shared,
            number: None,
            close: true,
        }
    }

    /// Wakes the task of this poll when a resource next comes or goes.
    pub(crate) fn watch(&mut self, context: &Context<'_>) {
        let waker = context.waker().clone();
        let before = self
            .shared
            .ledger()
            .watch(&mut self.number, self.close, waker);
        drop(before);
    }
}

impl<K: Kind> Drop for Watcher<'_, K> {
    fn drop(&mut self) {
        if self.close {
            self.shared.ledger().watch_closely(false);
        }
        if let Some(number) = self.number {
            let before = self.shared.ledger().unwatch(number);
            drop(before);
        }
    }
}
