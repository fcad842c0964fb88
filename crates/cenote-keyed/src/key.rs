//! One key: its pool, and its share of the budget.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use cenote::status::SlotState;
use cenote::{Manager, Pool};

use crate::keyed::Keyed;
use crate::room::{Owner, Share};

pub(crate) struct Entry<K, M: Manager + 'static> {
    pub(crate) key: K,
    pub(crate) pool: Pool<Keyed<M>>,
    pub(crate) share: Arc<Share>,
    /// It was looked up since the last sweep.
    is_recent: AtomicBool,
}

impl<K: fmt::Debug + Send + Sync + 'static, M: Manager + 'static> Entry<K, M> {
    pub(crate) fn new(key: K, pool: Pool<Keyed<M>>, share: Arc<Share>) -> Arc<Self> {
        let entry = Arc::new(Self {
            key,
            pool,
            share,
            is_recent: AtomicBool::new(true),
        });
        let owner: Weak<Self> = Arc::downgrade(&entry);
        entry.share.set_owner(owner);
        entry
    }

    /// It was looked up.
    #[inline]
    pub(crate) fn touch(&self) {
        // A write to a line that other cores read costs more than a read.
        if !self.is_recent.load(Ordering::Relaxed) {
            self.is_recent.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether it can be dropped: it has no place, no open waits for one, no caller has
    /// it, and it was not looked up since this was last asked.
    ///
    /// The map and the circle of its shard refer to it. Callers take it under the lock of the
    /// shard, so while that lock is held for writing, no caller can come.
    pub(crate) fn is_idle(entry: &Arc<Self>) -> bool {
        let was_recent = entry.is_recent.swap(false, Ordering::Relaxed);
        !was_recent && Arc::strong_count(entry) == 2 && entry.share.is_unused()
    }

    /// Closes the pool. Opens that wait for a place end.
    pub(crate) fn close(&self) {
        self.pool.close();
        self.share.call_off();
    }
}

impl<K: fmt::Debug + Send + Sync + 'static, M: Manager + 'static> Owner for Entry<K, M> {
    fn longest_idle(&self) -> Option<u64> {
        let slots = self.pool.slots().into_iter();
        let idle = slots.filter(|slot| slot.state == SlotState::Idle);
        let longest = idle.filter_map(|slot| slot.since).max()?;
        Some(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX))
    }

    fn evict(&self) -> bool {
        self.pool.evict(1) > 0
    }

    fn waiting(&self) -> usize {
        self.pool.status().waiting
    }

    fn label(&self) -> String {
        format!("{:?}", self.key)
    }
}
