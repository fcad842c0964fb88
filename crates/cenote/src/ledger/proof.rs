//! The proof that the backend is back. While the breaker recovers, the pool opens and checks one
//! resource before it lends any, so that no caller is spent as a probe (`self_probe`).

use super::{HELD_UP_AFTER, Ledger, Orders, Resource};
use crate::time::Moment;

impl<R: Resource> Ledger<R> {
    /// Sees to it that the proof is under way. Called whenever waiters are served, because that is
    /// when a slot has come free or a resource has come back.
    #[cold]
    pub(super) fn prove(&mut self, now: Moment, orders: &mut Orders<R>) {
        if self.closed {
            return;
        }
        if let Some(at) = self.proof_at(now) {
            self.due(at, orders);
        } else if self.has_room(now) {
            self.reserve(true, now);
        } else if let Some(slot) = self.shelved(0) {
            self.unshelve(slot);
            self.examine(slot, true, false, now);
        }
        // Else all resources are out. The first one that comes back is checked.
    }

    /// When the next try of the proof may begin, if it may not begin now: opens have just failed,
    /// or a resource is on its way that may be the proof.
    pub(super) fn proof_at(&self, now: Moment) -> Option<Moment> {
        let on_its_way = self.working(now).next();
        let held_up = on_its_way.map(|slot| self.slots[slot].since + HELD_UP_AFTER);
        held_up.or_else(|| self.put_off_until(now))
    }
}
