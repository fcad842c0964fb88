//! Severers: how each resource is cut from outside, where its manager knows how.
//!
//! The list is by slot. A severer is added while its slot is being opened, and removed before the
//! slot is free again. So a slot has at most one, and it belongs to the resource in that slot.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock};

use super::guarded::guarded_now;
use super::kind::Kind;
use super::shared::Shared;
use crate::ledger::SlotNo;
use crate::rt::sync::PoisonError;
use crate::sever::Severer;

/// Most managers have no severers, so that most pools need no list.
#[derive(Default)]
pub(crate) struct Severers(OnceLock<Box<Mutex<BySlot>>>);

type BySlot = BTreeMap<SlotNo, Severer>;

impl Severers {
    pub(crate) fn add(&self, slot: SlotNo, severer: Severer) {
        let list = self.0.get_or_init(Box::default);
        let before = lock(list).insert(slot, severer);
        debug_assert!(before.is_none(), "bug: a slot has one resource");
    }

    /// The resource in this slot is leaving the pool. The severer is dropped, which is user code.
    pub(crate) fn remove(&self, slot: SlotNo) {
        let severer = self.take(slot);
        let _ = guarded_now(|| drop(severer));
    }

    fn take(&self, slot: SlotNo) -> Option<Severer> {
        lock(self.0.get()?).remove(&slot)
    }
}

fn lock(list: &Mutex<BySlot>) -> MutexGuard<'_, BySlot> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Kind> Shared<K> {
    /// Cuts the leased resources of a closed pool. Returns how many.
    pub(crate) fn sever(&self) -> usize {
        let leased = self.ledger().leased_after_close();
        let severers = leased
            .into_iter()
            .filter_map(|slot| self.severers.take(slot));
        let cut = severers.map(guarded_now);
        cut.filter(Result::is_ok).count()
    }
}
