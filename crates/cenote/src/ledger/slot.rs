//! A slot: the room of one resource, its state, and what is written on the door.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::Location;
use std::time::Duration;

use crate::moment::Moment;
use crate::rt::{Home, Owner};

/// The number of a slot.
pub(crate) type SlotNo = usize;

/// What a slot is. In `Leased` the resource is still in the slot until its waiter has claimed it.
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

#[derive(Debug)]
pub(crate) struct Slot<R> {
    pub(crate) state: State,
    /// When it entered that state.
    pub(crate) since: Moment,
    /// Present in `Idle`, and in `Leased` until it is claimed. In the other states it is in somebody's hands.
    pub(crate) resource: Option<R>,

    // About the resource.
    pub(crate) id: u64,
    pub(crate) opened_at: Moment,
    /// When it was last used: where it belongs on the shelf.
    pub(crate) used_at: Moment,
    /// When it was last known to be alive: opened, returned, or checked.
    pub(crate) proven_at: Moment,
    pub(crate) expires_at: Option<Moment>,
    /// Set by `invalidate`: when it must go.
    pub(crate) retire_at: Option<Moment>,
    pub(crate) uses: u64,
    /// Must be checked before it is lent again, however fresh it is.
    pub(crate) suspect: bool,
    /// A replacement was ordered, for it expires soon.
    pub(crate) replaced: bool,
    pub(crate) home: Option<Home>,

    // About the lease.
    pub(crate) asker: Option<Asker>,
    pub(crate) label: Option<Label>,
    /// The holder is not among those who joined the line up to the one of this number.
    pub(crate) not_in_line: Cell<u64>,
    /// Was reported as leaked.
    pub(crate) overdue: bool,
    /// Was lent while the breaker recovered.
    pub(crate) probe: bool,

    /// Opening: nobody in particular waits for it.
    pub(crate) refill: bool,
}

impl<R> Slot<R> {
    pub(crate) fn vacant(now: Moment) -> Self {
        Self {
            state: State::Vacant,
            since: now,
            resource: None,
            id: 0,
            opened_at: now,
            used_at: now,
            proven_at: now,
            expires_at: None,
            retire_at: None,
            uses: 0,
            suspect: false,
            replaced: false,
            home: None,
            asker: None,
            label: None,
            not_in_line: Cell::new(0),
            overdue: false,
            probe: false,
            refill: false,
        }
    }

    /// Granted, but not yet taken by its waiter.
    pub(crate) fn is_unclaimed(&self) -> bool {
        self.state == State::Leased && self.resource.is_some()
    }

    /// Must this resource be checked before it is lent, if that is due after `check_after_idle` without proof of life?
    pub(crate) fn is_unproven(&self, check_after_idle: Option<Duration>, now: Moment) -> bool {
        self.suspect
            || check_after_idle
                .is_some_and(|after| now.saturating_duration_since(self.proven_at) >= after)
            || self.home.as_ref().is_some_and(Home::is_gone)
    }
}
