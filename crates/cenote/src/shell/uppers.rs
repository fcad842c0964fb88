//! The base of a second level: leases that are kept for long, and the pools that keep them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use super::carry_out::Place;
use super::guarded::guarded_now;
use super::kind::Threads;
use super::pooled::Pooled;
use super::shared::PoolRef;
use super::strategy::Evidence;
use crate::ledger::{Recall, SlotNo};
use crate::manager::Manager;
use crate::rt::sync::PoisonError;

impl<M: Manager + 'static> Pooled<Threads<M>> {
    /// Keeps the lease for long: it is neither a leak nor a part of a circle.
    pub(crate) fn keep(&mut self) -> Kept<M> {
        let shared = self.pool().clone();
        self.take_off(&shared, &mut shared.ledger());
        Kept::new(shared, self.slot)
    }
}

/// A lease that is kept for long. It does not keep its slot: the lease does.
pub(crate) struct Kept<M: Manager + 'static> {
    shared: PoolRef<Threads<M>>,
    slot: SlotNo,
}

impl<M: Manager + 'static> Kept<M> {
    /// The lease in `slot` has left its tray. It comes back late, so it counts as a success now: a
    /// breaker that recovers waits for the outcome of its probe.
    pub(crate) fn new(shared: PoolRef<Threads<M>>, slot: SlotNo) -> Self {
        let probe = shared.order(Place::Task, |ledger, now, orders| {
            ledger.keep(slot, now, orders)
        });
        shared.report(Evidence::Accepted { probe }, Place::Task);
        Self { shared, slot }
    }

    /// Returns whether the lease should come back.
    pub(crate) fn recalls(&self) -> Recall {
        let now = self.shared.clock.coarse_now();
        self.shared.ledger().recalls(self.slot, now)
    }
}

/// The pools that keep leases of this one. Most pools have none, and need no list.
#[derive(Default)]
pub(crate) struct Uppers(OnceLock<Box<Mutex<Vec<Upper>>>>);

/// Lets a pool look whether its leases are wanted back. Returns false if that pool is gone.
type Upper = Arc<dyn Fn() -> bool + Send + Sync>;

impl Uppers {
    pub(crate) fn add(&self, upper: Upper) {
        lock(self.0.get_or_init(Box::default)).push(upper);
    }

    /// A caller waits, or the terms have changed: leases that are kept may be wanted back.
    #[inline]
    pub(crate) fn tell(&self) {
        if let Some(uppers) = self.0.get() {
            tell_all(uppers);
        }
    }
}

#[cold]
fn tell_all(uppers: &Mutex<Vec<Upper>>) {
    let told = lock(uppers).clone();
    let is_gone = |upper: &Upper| !guarded_now(|| upper()).unwrap_or(true);
    let gone: Vec<_> = told.into_iter().filter(is_gone).collect();
    lock(uppers).retain(|upper| !gone.iter().any(|gone| Arc::ptr_eq(gone, upper)));
}

fn lock(uppers: &Mutex<Vec<Upper>>) -> MutexGuard<'_, Vec<Upper>> {
    uppers.lock().unwrap_or_else(PoisonError::into_inner)
}
