//! Watchers: the futures that want to know whenever a resource comes or goes, as `warm` and `close_within` do.

use std::task::Waker;

use super::{Ledger, Orders, Resource};

/// Names a watcher.
pub(crate) type WatchNo = u64;

#[derive(Debug, Default)]
pub(super) struct Watchers {
    /// One waker for each watcher, that of its last poll.
    wakers: Vec<(WatchNo, Waker)>,
    count: WatchNo,
}

impl<R: Resource> Ledger<R> {
    /// Wakes `waker` at the next coming or going of a resource. Returns a waker to be dropped without the lock.
    pub(crate) fn watch(&mut self, watcher: &mut Option<WatchNo>, waker: Waker) -> Option<Waker> {
        let Watchers { wakers, count } = &mut self.watchers;
        let number = *watcher.get_or_insert_with(|| {
            *count += 1;
            *count
        });
        match wakers.iter_mut().find(|(known, _)| *known == number) {
            Some((_, known)) => Some(std::mem::replace(known, waker)),
            None => {
                wakers.push((number, waker));
                None
            }
        }
    }

    /// The watcher is gone. Returns its waker, to be dropped without the lock.
    pub(crate) fn unwatch(&mut self, watcher: WatchNo) -> Option<Waker> {
        let wakers = &mut self.watchers.wakers;
        let place = wakers.iter().position(|(known, _)| *known == watcher)?;
        Some(wakers.swap_remove(place).1)
    }

    pub(super) fn tell_watchers(&mut self, orders: &mut Orders<R>) {
        for (_, waker) in self.watchers.wakers.drain(..) {
            orders.wake(waker);
        }
    }
}
