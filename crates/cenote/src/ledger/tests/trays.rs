//! The trays of the world: what is set aside changes hands here, and the ledger hears of it when it asks.

use super::*;

pub(super) struct Tray {
    token: Option<Token>,
    terms: Terms,
    asker: Asker,
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
        proven && self.may_come_back(now)
    }
}

impl World {
    pub(super) fn open_tray(&mut self, slot: SlotNo, uses: u64) {
        let terms = self.ledger.terms(slot);
        let waiting = self.callers.iter().any(|caller| !caller.is_woken());
        assert!(!waiting, "I8: set aside while somebody waits");
        let tray = Tray {
            token: None,
            terms,
            asker: self.asker(),
            since: self.now,
            used_at: None,
            uses,
        };
        let before = self.trays[slot].replace(tray);
        assert!(before.is_none(), "set aside twice");
    }

    pub(super) fn take_from_tray(&mut self) {
        let now = self.now;
        let asker = self.asker();
        let mut lying = self
            .trays
            .iter_mut()
            .enumerate()
            .filter_map(|(slot, tray)| {
                let tray = tray.as_mut()?;
                (tray.token.is_some() && tray.may_be_lent(now)).then_some((slot, tray))
            });
        let Some((slot, tray)) = lying.next() else {
            return;
        };
        tray.uses += 1;
        tray.since = now;
        tray.asker = asker;
        let token = tray.token.take().expect("it lies there");
        self.leases.push((slot, token));
        assert!(!self.closed, "I6: lent after it was closed");
    }

    pub(super) fn lay_back(&mut self, slot: SlotNo, token: Token) -> bool {
        let now = self.now;
        let tray = self.trays.get_mut(slot).and_then(Option::as_mut);
        let Some(tray) = tray.filter(|tray| tray.may_come_back(now)) else {
            return false;
        };
        tray.token = Some(token);
        tray.used_at = Some(now);
        true
    }

    /// How many lie on a tray.
    pub(super) fn lying(&self) -> usize {
        let trays = self.trays.iter().flatten();
        trays.filter(|tray| tray.token.is_some()).count()
    }

    pub(super) fn fetch_to_ask(&mut self) {
        if self.ledger.must_fetch(self.now) {
            self.fetch();
        }
    }

    pub(super) fn fetch(&mut self) {
        while let Some(slot) = self.ledger.next_aside() {
            self.fetch_one(slot);
        }
        assert_eq!(
            self.trays.iter().flatten().count(),
            0,
            "an open tray was forgotten"
        );
    }

    pub(super) fn fetch_one(&mut self, slot: SlotNo) {
        let Some(tray) = self.trays.get_mut(slot).and_then(Option::take) else {
            return;
        };
        self.inside.extend(tray.token);
        let fetched = Fetched {
            resource: tray.token,
            asker: tray.asker,
            label: None,
            since: tray.since,
            used_at: tray.used_at,
            uses: tray.uses,
        };
        self.ledger.fetched(slot, fetched);
    }
}
