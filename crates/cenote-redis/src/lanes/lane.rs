//! One lane.

use std::sync::atomic::{AtomicUsize, Ordering};

use cenote::HeldSlot;
use tokio::sync::Notify;

use crate::manager::Redis;
use crate::session::Session;

pub(super) struct Lane {
    // Cut before its slot is free.
    pub(super) session: Session,
    in_flight: AtomicUsize,
    /// Tells the keeper that no more commands come.
    pub(super) retire: Notify,
    pub(super) slot: HeldSlot<Redis>,
}

impl Lane {
    pub(super) fn new(session: Session, slot: HeldSlot<Redis>) -> Self {
        Self {
            session,
            in_flight: AtomicUsize::new(0),
            retire: Notify::new(),
            slot,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.session.is_broken()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(super) fn enter(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leave(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
