//! A slot without its resource: capacity that is lent to code outside of the pool.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::panic::Location;
use std::task::Poll;

use crate::ledger::{Orders, SlotNo};
use crate::manager::Manager;
use crate::shell::carry_out::Place;
use crate::shell::kind::Threads;
use crate::shell::shared::PoolRef;
use crate::shell::watcher::Watcher;

/// A slot whose resource was taken out, from [`Lease::hold_slot`](crate::Lease::hold_slot). The
/// slot is free again when this is dropped.
///
/// Until then it counts against `max_size` and is listed in [`Pool::leases`](crate::Pool::leases)
/// like the lease that it was. It is not reported as a leak, and no task counts as its holder.
///
/// It does not keep its pool open.
#[must_use = "a slot that is not kept is free at once"]
pub struct HeldSlot<M: Manager + 'static> {
    shared: PoolRef<Threads<M>>,
    slot: SlotNo,
    id: u64,
    site: &'static Location<'static>,
}

impl<M: Manager + 'static> HeldSlot<M> {
    /// The lease in `slot` has left its tray.
    pub(crate) fn new(
        shared: PoolRef<Threads<M>>,
        slot: SlotNo,
        id: u64,
        site: &'static Location<'static>,
    ) -> Self {
        let held = Self {
            shared,
            slot,
            id,
            site,
        };
        held.shared.order(Place::Drop, |ledger, now, orders| {
            ledger.keep(slot, now, orders);
        });
        held
    }

    /// Says what the slot is held for. The label is shown where the holder is named.
    pub fn label(&self, label: impl Into<Cow<'static, str>>) {
        let label = Some(Box::new(label.into().into()));
        let before = self.shared.ledger().set_label(self.slot, label);
        drop(before);
    }

    /// Waits until the pool is closed: the slot should be given back soon.
    ///
    /// # Cancel safety
    /// Dropping this future only stops the waiting.
    pub async fn pool_closed(&self) {
        let mut watcher = Watcher::new(&self.shared);
        poll_fn(|context| {
            watcher.watch(context);
            match self.shared.ledger().is_closed() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

impl<M: Manager + 'static> Drop for HeldSlot<M> {
    fn drop(&mut self) {
        let mut orders = Orders::default();
        let now = self.shared.clock.exact_now();
        self.shared.ledger().detach(self.slot, now, &mut orders);
        self.shared.carry_out(orders, Place::Drop);
        self.shared.observers.detached(self.id, self.site);
    }
}

impl<M: Manager + 'static> fmt::Debug for HeldSlot<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldSlot")
            .field("pool", &self.shared.name)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
