//! Orders: what the ledger wants done once its lock is released.

use std::mem;
use std::task::Waker;

use super::slot::SlotNo;
use crate::guarded::guarded_now;
use crate::moment::Moment;
use crate::status::Reason;

/// What must be done now, without the lock. Dropping it unread loses wake-ups.
#[derive(Debug, Default)]
#[must_use = "somebody may have to be woken"]
pub(crate) struct Orders {
    first: Option<Waker>,
    more: Vec<Call>,
    /// There is owed work: take it, or ask somebody to.
    pub(crate) owed: bool,
    /// The upkeep task sleeps for too long: wake it.
    pub(crate) ring: bool,
    /// Somebody must be woken to look again by then: set the alarm.
    pub(crate) alarm: Option<Moment>,
    /// There is something to be dropped outside the lock.
    pub(crate) waste: bool,
}

/// What is to become of a waker.
#[derive(Debug)]
enum Call {
    Wake(Waker),
    /// Of one who left the line. Dropping a waker may run foreign code, so it is not dropped under the lock.
    Spent(Waker),
}

impl Orders {
    #[inline]
    pub(crate) fn wake(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.more.push(Call::Wake(waker)),
        }
    }

    /// If there is somebody.
    #[inline]
    pub(crate) fn wake_soon(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.wake(waker);
        }
    }

    /// Is there anybody who has to be woken?
    #[inline]
    pub(crate) fn wakes(&self) -> bool {
        self.first.is_some()
    }

    /// Dropped with the orders.
    #[inline]
    pub(crate) fn spend(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.more.push(Call::Spent(waker));
        }
    }

    /// Wakes everybody who has to be woken.
    #[inline]
    pub(crate) fn wake_all(&mut self) {
        if let Some(waker) = self.first.take() {
            wake(waker);
        }
        if !self.more.is_empty() {
            self.call_more();
        }
    }

    /// Is there something to do besides?
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.owed || self.ring || self.waste || self.alarm.is_some()
    }

    #[cold]
    fn call_more(&mut self) {
        for call in mem::take(&mut self.more) {
            match call {
                Call::Wake(waker) => wake(waker),
                Call::Spent(waker) => drop(waker),
            }
        }
    }
}

/// A waker is foreign code. If one panics, which the panic hook has told, the others are woken all the same.
#[inline]
fn wake(waker: Waker) {
    let _ = guarded_now(|| waker.wake());
}

/// Something asynchronous that the pool owes itself. Whoever has a runtime takes it and does it.
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
