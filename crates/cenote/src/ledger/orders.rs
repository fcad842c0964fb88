//! Orders: what the ledger wants done once its lock is released.

use std::mem;
use std::task::Waker;

use super::slot::SlotNo;
use crate::status::Reason;

/// What must be done now, without the lock. Dropping it unread loses wake-ups.
#[derive(Debug, Default)]
#[must_use = "somebody may have to be woken"]
pub(crate) struct Orders {
    first: Option<Waker>,
    more: Vec<Waker>,
    /// Of one who left the line. Dropping a waker may run foreign code, so it is not dropped under the lock.
    spent: Option<Waker>,
    /// There is owed work: take it, or ask somebody to.
    pub(crate) owed: bool,
    /// The upkeep task sleeps for too long: wake it.
    pub(crate) ring: bool,
    /// There is something to be dropped outside the lock.
    pub(crate) waste: bool,
}

impl Orders {
    pub(crate) fn wake(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.more.push(waker),
        }
    }

    /// Is there anybody who has to be woken?
    pub(crate) fn wakes(&self) -> bool {
        self.first.is_some()
    }

    pub(crate) fn spend(&mut self, waker: Waker) {
        self.spent = Some(waker);
    }

    /// Wakes everybody who has to be woken.
    pub(crate) fn wake_all(&mut self) {
        if let Some(waker) = self.first.take() {
            waker.wake();
        }
        mem::take(&mut self.more).into_iter().for_each(Waker::wake);
    }
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
