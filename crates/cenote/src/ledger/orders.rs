//! Orders: what the ledger wants done once its lock is released.

use std::task::Waker;

use super::Resource;
use super::circle::Circle;
use super::mailbox::Mail;
use super::slot::SlotNo;
use crate::moment::Moment;
use crate::status::Reason;

/// What must be done now, without the lock. Dropping it unread loses wake-ups.
#[derive(Debug)]
#[must_use = "a waiter may have to be woken"]
pub(crate) struct Orders<R: Resource> {
    /// To be woken first.
    first: Option<Waker>,
    /// Rare.
    more: Option<Box<More<R>>>,
    /// There is owed work: do it, or ask a helper to.
    pub(crate) owed: bool,
    /// The upkeep task sleeps for too long: wake it.
    pub(crate) ring: bool,
    /// Set the alarm for this moment.
    pub(crate) alarm: Option<Moment>,
    /// There is something to be dropped without the lock.
    pub(crate) waste: bool,
    /// A circle was found: raise the event.
    pub(crate) circle: Option<Box<Circle>>,
}

/// More wakers, and what must be dropped without the lock, because its destructor is user code.
#[derive(Debug)]
pub(crate) struct More<R: Resource> {
    pub(crate) wakers: Vec<Waker>,
    spent: Vec<Waker>,
    unread: Vec<Mail<R>>,
}

impl<R: Resource> Default for Orders<R> {
    #[inline]
    fn default() -> Self {
        Self {
            first: None,
            more: None,
            owed: false,
            ring: false,
            alarm: None,
            waste: false,
            circle: None,
        }
    }
}

impl<R: Resource> Orders<R> {
    #[inline]
    pub(super) fn wake(&mut self, waker: Waker) {
        if self.first.is_none() && self.more.is_none() {
            self.first = Some(waker);
        } else {
            self.more().wakers.push(waker);
        }
    }

    /// Wakes the waiter, unless it was woken before and has not polled since.
    #[inline]
    pub(super) fn wake_waiter(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.wake(waker);
        }
    }

    /// Drops a waker without the lock.
    #[inline]
    pub(super) fn spend(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.more().spent.push(waker);
        }
    }

    /// Drops mail of a waiter that is gone.
    pub(super) fn discard(&mut self, mail: Mail<R>) {
        self.more().unread.push(mail);
    }

    #[cold]
    fn more(&mut self) -> &mut More<R> {
        self.more.get_or_insert_with(|| {
            Box::new(More {
                wakers: Vec::new(),
                spent: Vec::new(),
                unread: Vec::new(),
            })
        })
    }

    /// Returns whether a waiter is to be woken.
    #[inline]
    pub(crate) fn wakes(&self) -> bool {
        self.first.is_some()
    }

    /// The first waker.
    #[inline]
    pub(crate) fn first_waker(&mut self) -> Option<Waker> {
        self.first.take()
    }

    /// The others.
    #[inline]
    pub(crate) fn more_wakers(&mut self) -> Option<Box<More<R>>> {
        self.more.take()
    }

    /// Returns whether there is something to do besides waking.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.owed || self.ring || self.waste || self.alarm.is_some() || self.circle.is_some()
    }
}

/// Something asynchronous that the pool owes itself. A caller that has a runtime starts a task for it.
#[derive(Debug)]
pub(crate) enum Work<R> {
    /// Open a resource for this slot.
    Open { slot: SlotNo },
    /// Find out whether an idle resource may be lent.
    Vet {
        slot: SlotNo,
        id: u64,
        resource: R,
        check: bool,
        ask: bool,
    },
    /// Make a returned resource fit for the next user.
    Clean {
        slot: SlotNo,
        id: u64,
        resource: R,
        clean: bool,
        probe: bool,
    },
    /// Close a resource.
    Close {
        slot: SlotNo,
        id: u64,
        resource: R,
        reason: Reason,
    },
}
