//! The trays of a random history. A slot on a tray changes hands here, and the ledger learns of it
//! when the slot is taken off.

use super::history::{Lent, World};
use super::*;

fn may_come_back(tray: &OnTray<Token>, now: Moment) -> bool {
    tray.uses < tray.most_uses && now < tray.fit_until
}

fn may_be_lent(tray: &OnTray<Token>, now: Moment) -> bool {
    let unused = now.nanoseconds_since(tray.used_at);
    tray.resource.is_some() && unused < tray.stale_after && may_come_back(tray, now)
}

impl World {
    /// A resource was lent to a caller that did not wait: its slot may go on a tray.
    pub(super) fn lent_on_tray(&mut self, grant: Token, orders: &mut Orders<Token>) {
        let (slot, now) = (grant.slot, self.now);
        let tray = self.ledger.find_tray(slot);
        if let Some(tray) = tray {
            if self.ledger.is_tray_taken(tray) {
                self.clear_tray(tray);
            }
            let ledger = &mut self.ledger;
            let on_tray = ledger.put_on_tray(slot, tray, asker(), now, orders);
            assert_eq!((on_tray.slot, on_tray.uses), (slot, grant.uses));
            assert!(
                self.is_queue_empty(),
                "I8: on a tray while a waiter is queued"
            );
            assert_eq!(self.ledger.tray_of(slot), Some(tray));
            let before = self.trays[tray as usize].replace(on_tray);
            assert!(before.is_none(), "two slots on one tray");
        }
        self.lent(grant, tray);
    }

    pub(super) fn take_from_tray(&mut self) {
        let now = self.now;
        let mut trays = self.trays.iter_mut().zip(0..);
        let found = trays.find_map(|(tray, number)| {
            let tray = tray.as_mut()?;
            may_be_lent(tray, now).then_some((tray, number))
        });
        let Some((tray, number)) = found else {
            return;
        };
        tray.uses += 1;
        tray.since = now;
        let token = tray.resource.take().expect("it lies there");
        self.leases.push(Lent {
            slot: tray.slot,
            token,
            tray: Some(number),
        });
        assert!(!self.closed, "I6: lent after the pool was closed");
        self.refuses_lease();
    }

    /// Lays a resource on its tray. Returns whether that was possible.
    pub(super) fn lay_back(&mut self, lent: &Lent) -> bool {
        let now = self.now;
        let tray = lent
            .tray
            .and_then(|tray| self.trays[tray as usize].as_mut());
        let fits = |tray: &&mut OnTray<_>| tray.slot == lent.slot && may_come_back(tray, now);
        let Some(tray) = tray.filter(fits) else {
            return false;
        };
        tray.resource = Some(lent.token);
        tray.used_at = now;
        true
    }

    /// How many resources lie on trays.
    pub(super) fn lying(&self) -> usize {
        let trays = self.trays.iter().flatten();
        trays.filter(|tray| tray.resource.is_some()).count()
    }

    /// Clears the trays before a request, if that is needed.
    pub(super) fn clear_trays_to_ask(&mut self, ask: Ask) {
        if self.ledger.needs_trays(ask, self.now) {
            self.clear_trays();
        }
    }

    pub(super) fn clear_trays(&mut self) {
        for tray in self.ledger.trays() {
            if self.ledger.is_tray_taken(tray) {
                self.clear_tray(tray);
            }
        }
        let open = self.trays.iter().flatten().count();
        assert_eq!(open, 0, "an open tray was forgotten");
        assert!(self.ledger.trays().is_empty());
    }

    /// A lease ends: its slot leaves its tray, if it is still on one.
    pub(super) fn take_off(&mut self, lent: &Lent) {
        if lent.tray.is_some() {
            if let Some(tray) = self.ledger.tray_of(lent.slot) {
                self.clear_tray(tray);
            }
        }
    }

    fn clear_tray(&mut self, number: TrayNo) {
        let off = self.trays[number as usize].take();
        let off = off.expect("a tray that is taken is open");
        let slot = off.slot;
        self.inside.extend(off.resource);
        self.ledger.taken_off(number, off);
        assert_eq!(self.ledger.tray_of(slot), None);
    }

    /// An upkeep task ends, or begins. The trays were cleared, as by a task that ends.
    pub(super) fn change_upkeep(&mut self) {
        let runs = self.rng.bool();
        self.ledger.note_upkeep(runs);
    }
}
