//! Wake-ups that carry no outcome: for futures that watch resources come and go, as `warm` and
//! `close_within` do, or every change, as `wait_for` does; and for waiters that should look again.

use std::mem;
use std::task::Waker;

use super::{Ledger, Orders, Resource};

/// How many waiters look again at once. Several, because any of them may be on a runtime that is
/// not driven.
const FIRST: usize = 64;

/// The number of a watcher.
pub(crate) type WatchNo = u64;

#[derive(Debug, Default)]
pub(super) struct Watchers {
    /// One for each watcher that was polled since it was last woken.
    watching: Vec<Watching>,
    count: WatchNo,
    /// How many watchers there are that watch every change.
    close: usize,
}

#[derive(Debug)]
struct Watching {
    number: WatchNo,
    /// It watches every change, and not only resources that come and go.
    close: bool,
    /// The waker of its last poll.
    waker: Waker,
}

impl<R: Resource> Ledger<R> {
    /// Wakes `waker` when a resource next comes or goes, or at the next change. Returns a waker to
    /// be dropped without the lock.
    pub(crate) fn watch(
        &mut self,
        watcher: &mut Option<WatchNo>,
        close: bool,
        waker: Waker,
    ) -> Option<Waker> {
        let Watchers {
            watching, count, ..
        } = &mut self.watchers;
        let number = *watcher.get_or_insert_with(|| {
            *count += 1;
            *count
        });
        match watching.iter_mut().find(|known| known.number == number) {
            Some(known) => Some(mem::replace(&mut known.waker, waker)),
            None => {
                watching.push(Watching {
                    number,
                    close,
                    waker,
                });
                None
            }
        }
    }

    /// A watcher begins to watch every change, or ends. While there is one, no slot is on a tray.
    pub(crate) fn watch_closely(&mut self, begins: bool) {
        let close = &mut self.watchers.close;
        *close = if begins { *close + 1 } else { *close - 1 };
    }

    #[inline]
    pub(super) fn is_watched_closely(&self) -> bool {
        self.watchers.close > 0
    }

    /// The watcher is gone. Returns its waker, to be dropped without the lock.
    pub(crate) fn unwatch(&mut self, watcher: WatchNo) -> Option<Waker> {
        let watching = &mut self.watchers.watching;
        let place = watching.iter().position(|known| known.number == watcher)?;
        Some(watching.swap_remove(place).waker)
    }

    /// A resource came or went.
    pub(super) fn tell_watchers(&mut self, orders: &mut Orders<R>) {
        for known in self.watchers.watching.drain(..) {
            orders.wake(known.waker);
        }
    }

    /// Something has changed. Only those that watch every change are told: the others ask the
    /// ledger when they are polled, and so would wake themselves for ever.
    pub(super) fn tell_close_watchers(&mut self, orders: &mut Orders<R>) {
        let watching = mem::take(&mut self.watchers.watching);
        let (close, others): (Vec<_>, Vec<_>) = watching.into_iter().partition(|known| known.close);
        self.watchers.watching = others;
        for known in close {
            orders.wake(known.waker);
        }
    }

    /// Wakes the first waiters, so that they look again.
    pub(super) fn wake_first(&mut self, orders: &mut Orders<R>) {
        for waker in self.waiters.wakers(FIRST) {
            orders.wake(waker);
        }
    }
}
