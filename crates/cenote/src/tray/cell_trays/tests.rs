//! The trays of one thread by themselves.

use std::convert::Infallible;
use std::time::Duration;

use super::*;
use crate::ledger::Asker;
use crate::time::{self, nanoseconds};

const MINUTE: Duration = Duration::from_secs(60);

/// Knows its slot, and the tray that its slot was put on.
struct Thing(SlotNo, Option<CellTray<Thing>>);

impl Resource for Thing {
    type Error = Infallible;

    fn opened(&mut self, _: SlotNo, _: u64) {}

    fn lent(&mut self, _: u64, _: bool) {}

    fn slot(&self) -> SlotNo {
        self.0
    }
}

impl OnCellTray for Thing {
    fn tray(&self) -> Option<&CellTray<Self>> {
        self.1.as_ref()
    }
}

/// Trays of things, and the time at which they are used. Tray and slot have the same number.
struct Table {
    trays: CellTrays<Thing>,
    now: Moment,
}

impl Table {
    fn new() -> Self {
        Self {
            trays: CellTrays::for_size(9),
            now: time::now(),
        }
    }

    /// Things that lie on their trays, in this order.
    fn laid<const N: usize>(slots: [SlotNo; N]) -> Self {
        let table = Self::new();
        for slot in slots {
            let lent = table.put(slot as TrayNo, slot);
            assert!(table.lay_back(lent));
        }
        table
    }

    /// Puts a slot that was just lent on a tray. It may lie there unused for a minute.
    fn put(&self, tray: TrayNo, slot: SlotNo) -> Thing {
        let on_tray = OnTray {
            slot,
            resource: None,
            fit_until: Moment::NEVER,
            stale_after: nanoseconds(MINUTE),
            most_uses: 9,
            asker: Asker {
                site: Location::caller(),
                owner: None,
            },
            since: self.now,
            label: None,
            used_at: self.now,
            uses: 1,
            held: 0,
        };
        Thing(slot, Some(self.trays.open(tray, on_tray)))
    }

    fn take(&self) -> Option<Thing> {
        let taken = self.trays.take(Location::caller(), || self.now);
        taken.map(|(thing, _)| thing)
    }

    fn take_all(&self) -> Vec<SlotNo> {
        std::iter::from_fn(|| self.take().map(|thing| thing.0)).collect()
    }

    fn lay_back(&self, thing: Thing) -> bool {
        self.trays.lay_back(thing, self.now).is_ok()
    }
}

#[test]
fn the_resource_that_was_laid_back_last_is_taken_first() {
    let table = Table::laid([0, 1, 2]);

    let (two, one) = (table.take().expect("two"), table.take().expect("one"));
    assert!(table.lay_back(two));
    assert!(table.lay_back(one));

    assert_eq!(table.take_all(), [1, 2, 0]);
}

#[test]
fn a_tray_that_is_closed_gives_its_resource_back_and_the_others_keep_their_order() {
    for closed in 0..4 {
        let table = Table::laid([0, 1, 2, 3]);

        let off = table.trays.close(closed as TrayNo).expect("it was open");

        assert_eq!(off.resource.map(|thing| thing.0), Some(closed));
        let left = [3, 2, 1, 0].into_iter().filter(|slot| *slot != closed);
        assert!(table.take_all().into_iter().eq(left));
    }
}

#[test]
fn a_tray_that_is_closed_while_its_resource_is_lent_has_nothing_on_it() {
    let mut table = Table::laid([0, 1]);
    let lent = table.take().expect("one");
    table.now += MINUTE;
    assert!(table.lay_back(lent));
    let lent = table.take().expect("one");

    let off = table.trays.close(1).expect("it was open");

    assert!(off.resource.is_none());
    assert_eq!(off.uses, 3);
    assert_eq!(off.held, nanoseconds(MINUTE));
    assert_eq!((off.since, off.used_at), (table.now, table.now));
    assert!(!table.lay_back(lent), "the ledger has to take it");
}

#[test]
fn a_resource_is_not_laid_on_a_tray_that_another_slot_is_on() {
    let table = Table::laid([0]);
    let lent = table.take().expect("it lies ready");
    table.trays.close(0).expect("it was open");
    let other = table.put(0, 7);

    assert!(!table.lay_back(lent));
    assert!(table.lay_back(other));
    assert_eq!(table.take_all(), [7]);
}

#[test]
fn a_resource_that_lay_too_long_stays_for_the_ledger() {
    let mut table = Table::laid([0]);
    table.now += MINUTE;

    assert!(table.take().is_none());
    let off = table.trays.close(0).expect("it was open");
    assert_eq!(off.resource.map(|thing| thing.0), Some(0));
    assert_eq!(off.uses, 1, "it was not lent");
}

#[test]
fn a_resource_that_was_lent_often_enough_goes_to_the_ledger() {
    let table = Table::laid([0]);
    for _ in 0..7 {
        assert!(table.take().is_some_and(|thing| table.lay_back(thing)));
    }

    let last = table.take().expect("it may be lent once more");

    assert!(!table.lay_back(last), "the ledger has to close it");
}

#[test]
fn the_clock_is_not_read_if_nothing_lies_ready() {
    let table = Table::new();
    let _lent = table.put(0, 0);

    let taken = table.trays.take(Location::caller(), || unreachable!());

    assert!(taken.is_none());
}

#[test]
fn a_label_is_written_on_the_lease_of_its_slot_and_dropped_with_it() {
    let table = Table::laid([0]);
    let lent = table.take().expect("it lies ready");
    let label = || Box::new("report".into());

    assert!(table.trays.label(0, 0, label()).is_ok());
    assert!(table.trays.label(0, 5, label()).is_err(), "another slot");
    assert!(table.trays.label(8, 0, label()).is_err(), "no such tray");
    assert!(table.lay_back(lent));

    let off = table.trays.close(0).expect("it was open");
    assert!(off.label.is_none());
}
