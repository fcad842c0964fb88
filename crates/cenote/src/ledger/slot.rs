//! A slot: the place of one resource, and its state.

use std::borrow::Cow;
use std::panic::Location;

use super::Resource;
use super::mailbox::MailboxRef;
use super::trays::TrayNo;
use crate::meter::Meter;
use crate::rt::Owner;
use crate::time::Moment;

/// The number of a slot.
pub(crate) type SlotNo = usize;

/// The state of a slot. A `Leased` resource is in its waiter's mailbox until it is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Vacant,
    Opening,
    Idle,
    Leased,
    /// Idle or leased. Its tray knows which.
    OnTray,
    Checking,
    Cleaning,
    Closing,
}

impl State {
    /// How many states there are.
    pub(crate) const COUNT: usize = 8;

    /// Returns whether the pool works on a resource that may serve a waiter soon.
    pub(crate) fn is_work(self) -> bool {
        matches!(self, Self::Opening | Self::Checking | Self::Cleaning)
    }

    /// Every edge that a slot can take is on this list.
    pub(crate) fn may_become(self, next: Self) -> bool {
        use State::{Checking, Cleaning, Closing, Idle, Leased, OnTray, Opening, Vacant};
        matches!(
            (self, next),
            (Vacant, Opening)
                | (Opening, Leased | Idle | Checking | Closing | Vacant)
                | (Idle, Leased | Checking | Closing)
                | (
                    Leased,
                    Leased | OnTray | Idle | Checking | Cleaning | Closing | Vacant
                )
                | (OnTray, Leased | Idle)
                | (Checking, Leased | Idle | Closing | Vacant)
                | (Cleaning, Leased | Idle | Closing | Vacant)
                | (Closing, Vacant)
        )
    }
}

/// What a holder says about its lease. In a box, because it is large and rare.
pub(crate) type Label = Box<LabelParts>;

#[derive(Debug)]
pub(crate) struct LabelParts {
    pub(crate) text: Cow<'static, str>,
    pub(crate) meter: Option<Meter>,
}

impl<T: Into<Cow<'static, str>>> From<T> for LabelParts {
    fn from(text: T) -> Self {
        let (text, meter) = (text.into(), None);
        Self { text, meter }
    }
}

#[cfg(test)]
impl PartialEq for LabelParts {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// The caller that asked for a lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) site: &'static Location<'static>,
    pub(crate) owner: Option<Owner>,
}

/// In this order, so that a hand-over touches few cache lines. Not aligned to them: that would take
/// 400 bytes more in an idle pool of ten, for perhaps 1 % on two cores.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Slot<R: Resource> {
    /// When it entered its state.
    pub(crate) since: Moment,
    /// Present in `Idle`. In the other states the resource is elsewhere.
    pub(crate) resource: Option<R>,
    pub(crate) uses: u64,
    /// When it was last used: its place on the shelf.
    pub(crate) used_at: Moment,
    pub(crate) asker: Option<Asker>,
    /// The mailbox of the waiter that it was granted to, until the lease ends.
    pub(crate) mailbox: Option<MailboxRef<R>>,

    /// The deadline of that waiter.
    pub(crate) deadline: Moment,
    pub(crate) expires_at: Option<Moment>,
    /// When it must be closed, set by `invalidate`.
    pub(crate) retire_at: Option<Moment>,
    pub(crate) label: Option<Label>,
    pub(crate) state: State,
    /// It was lent while the breaker recovered.
    pub(crate) probe: bool,
    /// It was reported as leaked.
    pub(crate) overdue: bool,
    /// It is held on purpose, and by no task: neither a leak nor a part of a circle.
    pub(crate) kept: bool,
    /// It expires soon, and it was decided whether its replacement is opened.
    pub(crate) replaced: bool,
    /// It is opened for upkeep, and not for a waiter.
    pub(crate) refill: bool,
    /// Where it is in the list of slots at work.
    pub(crate) work_index: u32,
    pub(crate) tray: Option<TrayNo>,

    pub(crate) id: u64,
    pub(crate) opened_at: Moment,
    /// When it was last opened or found alive. See `proven_at`.
    pub(crate) checked_at: Moment,
}

impl<R: Resource> Slot<R> {
    pub(crate) fn vacant(now: Moment) -> Self {
        Self {
            state: State::Vacant,
            since: now,
            resource: None,
            id: 0,
            opened_at: now,
            used_at: now,
            checked_at: now,
            expires_at: None,
            retire_at: None,
            uses: 0,
            replaced: false,
            asker: None,
            label: None,
            mailbox: None,
            deadline: now,
            overdue: false,
            kept: false,
            probe: false,
            refill: false,
            work_index: 0,
            tray: None,
        }
    }

    /// When it was last known to be alive: opened, returned, or checked.
    pub(crate) fn proven_at(&self) -> Moment {
        self.used_at.max(self.checked_at)
    }

    /// Returns whether it was granted to a waiter that has not taken it yet.
    pub(crate) fn is_unclaimed(&self) -> bool {
        let mailbox = self.mailbox.as_ref();
        mailbox.is_some_and(|mailbox| mailbox.has_grant())
    }
}
