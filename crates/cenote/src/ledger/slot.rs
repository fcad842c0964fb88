//! A slot: the room of one resource, its state, and what is written on the door.

use std::borrow::Cow;
use std::panic::Location;
use std::time::Duration;

use super::Resource;
use super::answers::Grant;
use super::seat::SeatNo;
use crate::moment::Moment;
use crate::rt::{Home, Owner};

/// The number of a slot.
pub(crate) type SlotNo = usize;

/// What a slot is. What is `Leased` is in its waiter's mailbox until it is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Vacant,
    Opening,
    Idle,
    Leased,
    /// Idle or leased: its tray knows.
    Aside,
    Checking,
    Cleaning,
    Closing,
}

impl State {
    /// Every edge that a slot can take is on this list.
    pub(crate) fn may_become(self, next: Self) -> bool {
        use State::{Aside, Checking, Cleaning, Closing, Idle, Leased, Opening, Vacant};
        matches!(
            (self, next),
            (Vacant, Opening)
                | (Opening, Leased | Idle | Closing | Vacant)
                | (Idle, Leased | Checking | Closing)
                | (Leased, Leased | Aside | Idle | Cleaning | Closing | Vacant)
                | (Aside, Leased | Idle)
                | (Checking, Leased | Idle | Closing | Vacant)
                | (Cleaning, Leased | Idle | Closing | Vacant)
                | (Closing, Vacant)
        )
    }
}

/// What a lease is for. In a box, for it is large and rare.
pub(crate) type Label = Box<Cow<'static, str>>;

/// Who asked for a lease: written on the slot while it is out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) site: &'static Location<'static>,
    pub(crate) owner: Option<Owner>,
}

/// On two cache lines of its own, for its neighbours are in the hands of other cores; and in this order: a trip writes to the first only.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Slot<R> {
    /// When it entered its state.
    pub(crate) since: Moment,
    /// Present in `Idle`. In the other states it is in somebody's hands.
    pub(crate) resource: Option<R>,
    pub(crate) uses: u64,
    /// When it was last used: where it belongs on the shelf.
    pub(crate) used_at: Moment,
    pub(crate) asker: Option<Asker>,
    /// If its holder waited for it: where. It is theirs until the lease ends.
    pub(crate) seat: Option<SeatNo>,
    pub(crate) state: State,
    /// Was lent while the breaker recovered.
    pub(crate) probe: bool,
    /// Was reported as leaked.
    pub(crate) overdue: bool,

    // Seldom written.
    /// Must be checked before it is lent again, however fresh it is.
    pub(crate) suspect: bool,
    pub(crate) id: u64,
    pub(crate) opened_at: Moment,
    /// When it was last opened or found alive. See `proven_at`.
    pub(crate) checked_at: Moment,
    pub(crate) expires_at: Option<Moment>,
    /// Set by `invalidate`: when it must go.
    pub(crate) retire_at: Option<Moment>,
    pub(crate) home: Option<Home>,
    pub(crate) label: Option<Label>,
    /// A replacement was ordered, for it expires soon.
    pub(crate) replaced: bool,
    /// Opening: nobody in particular waits for it.
    pub(crate) refill: bool,
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
            suspect: false,
            replaced: false,
            home: None,
            asker: None,
            label: None,
            seat: None,
            overdue: false,
            probe: false,
            refill: false,
        }
    }

    /// When it was last known to be alive: opened, returned, or checked.
    pub(crate) fn proven_at(&self) -> Moment {
        self.used_at.max(self.checked_at)
    }

    /// What was granted was never claimed.
    pub(crate) fn take_back(&mut self, mut grant: Grant<R>) {
        grant.resource.shelve();
        self.resource = Some(grant.resource);
        self.uses -= 1;
        self.seat = None;
    }

    /// Must this resource be checked before it is lent, if that is due after `check_after_idle` without proof of life?
    pub(crate) fn is_unproven(&self, check_after_idle: Option<Duration>, now: Moment) -> bool {
        self.suspect
            || check_after_idle
                .is_some_and(|after| now.saturating_duration_since(self.proven_at()) >= after)
            || self.home.as_ref().is_some_and(Home::is_gone)
    }
}
