//! The trays of the world: a slot on a tray changes hands here, and the ledger hears of it when it
//! is taken off.

use super::*;

pub(super) struct Tray {
    slot: SlotNo,
    token: Option<Token>,
    terms: Terms,
    since: Moment,
    used_at: Option<Moment>,
    uses: u64,
}

impl Tray {
    fn may_come_back(&self, now: Moment) -> bool {
        self.uses < self.terms.most_uses && self.terms.fit_until.is_none_or(|until| now < until)
    }

    fn may_be_lent(&self, now: Moment) -> bool {
        let idle_for = now.saturating_duration_since(self.used_at.unwrap_or(self.since));
        let proven = self
            .terms
            .check_after_idle
            .is_none_or(|after| idle_for < after);
        self.token.is_some() && proven && self.may_come_back(now)
    }
}

impl World {
    /// A resource was lent to a caller that did not wait: its slot may go on a tray.
    pub(super) fn lent_on_tray(&mut self, grant: Grant<Token>, orders: &mut Orders<Token>) {
        let (slot, uses) = (grant.slot, grant.uses);
        let tray = self.ledger.find_tray(slot);
        if let Some(tray) = tray {
            if self.ledger.is_tray_taken(tray) {
                self.clear_tray(tray);
            }
            let terms = self.ledger.put_on_tray(slot, tray, self.now, orders);
            assert!(
                self.is_line_empty(),
                "I8: on a tray while a waiter is queued"
            );
            assert_eq!(self.ledger.tray_of(slot), Some(tray));
            let before = self.trays[tray as usize].replace(Tray {
                slot,
                token: None,
                terms,
                since: self.now,
                used_at: None,
                uses,
            });
            assert!(before.is_none(), "two slots on one tray");
        }
        self.lent(grant, tray);
    }

    pub(super) fn take_from_tray(&mut self) {
        let now = self.now;
        let mut trays = self.trays.iter_mut().zip(0..);
        let lying = trays.find_map(|(tray, number)| {
            let tray = tray.as_mut()?;
            tray.may_be_lent(now).then_some((tray, number))
        });
        let Some((tray, number)) = lying else {
            return;
        };
        tray.uses += 1;
        tray.since = now;
        let token = tray.token.take().expect("it lies there");
        self.leases.push(Lent {
            slot: tray.slot,
            token,
            tray: Some(number),
        });
        assert!(!self.closed, "I6: lent after it was closed");
    }

    /// Lays a resource on its tray. Returns whether that was possible.
    pub(super) fn lay_back(&mut self, lent: &Lent) -> bool {
        let now = self.now;
        let tray = lent
            .tray
            .and_then(|tray| self.trays[tray as usize].as_mut());
        let fits = |tray: &&mut Tray| tray.slot == lent.slot && tray.may_come_back(now);
        let Some(tray) = tray.filter(fits) else {
            return false;
        };
        tray.token = Some(lent.token);
        tray.used_at = Some(now);
        true
    }

    /// How many lie on a tray.
    pub(super) fn lying(&self) -> usize {
        let trays = self.trays.iter().flatten();
        trays.filter(|tray| tray.token.is_some()).count()
    }

    pub(super) fn clear_trays_to_ask(&mut self) {
        if self.ledger.needs_trays(self.now) {
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
        let tray = self.trays[number as usize].take();
        let tray = tray.expect("a tray that is taken is open");
        self.inside.extend(tray.token);
        let off = OffTray {
            resource: tray.token,
            asker: asker(),
            label: None,
            since: tray.since,
            used_at: tray.used_at,
            uses: tray.uses,
        };
        self.ledger.taken_off(number, off);
        assert_eq!(self.ledger.tray_of(tray.slot), None);
    }

    /// An upkeep task ends, or begins. A task that ends clears the trays.
    pub(super) fn change_upkeep(&mut self) {
        let runs = self.rng.bool();
        self.ledger.keep_up(runs);
    }
}
