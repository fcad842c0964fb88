//! Trays by themselves, and a pool whose ledger is locked while they are used.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::panic::Location;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use super::*;
use crate::ledger::Asker;
use crate::rt::sync::MutexGuard;
use crate::shell::kind::Threads;
use crate::shell::shared::PoolLedger;
use crate::time::{self, nanoseconds};
use crate::{Closures, Lease, Pool};

const HOUR: Duration = Duration::from_secs(60 * 60);
const ENOUGH: Duration = Duration::from_secs(20);

/// How a slot begins on its tray: it was just lent for the first time, and may change hands for
/// ever.
fn on_tray<R>(slot: SlotNo, now: Moment) -> OnTray<R> {
    OnTray {
        slot,
        resource: None,
        fit_until: Moment::NEVER,
        stale_after: u64::MAX,
        most_uses: u64::MAX,
        asker: Asker {
            site: Location::caller(),
            owner: None,
        },
        since: now,
        label: None,
        used_at: now,
        uses: 1,
        held: 0,
    }
}

/// Trays of numbers, and the time at which they are used.
struct Table {
    trays: Trays<usize>,
    now: Moment,
}

impl Table {
    fn new(size: usize) -> Self {
        Self {
            trays: Trays::for_size(size),
            now: time::now(),
        }
    }

    /// Each number was lent once, and lies on the tray of its slot.
    fn laid(size: usize) -> Self {
        Self::laid_on_terms(size, |_| {})
    }

    fn laid_on_terms(size: usize, terms: impl Fn(&mut OnTray<usize>)) -> Self {
        let table = Self::new(size);
        for slot in 0..size {
            let mut lent = on_tray(slot, table.now);
            terms(&mut lent);
            let opened = table.trays.open(slot as TrayNo, lent);
            let laid = opened.lay_back(slot, slot, table.now);
            laid.expect("its tray is open");
        }
        table
    }

    fn take(&self) -> Option<usize> {
        let (number, _) = self.trays.take(Location::caller(), || self.now)?;
        Some(number)
    }

    fn lay_back(&self, number: usize) -> bool {
        let tray = self.trays.trays[number].get();
        let tray = tray.expect("it was opened before");
        let laid = tray.lay_back(number, number, self.now);
        self.trays.remember(number as TrayNo);
        laid.is_ok()
    }
}

/// Closes the trays, as a pool does before it ends, because the next pool gets them.
impl Drop for Table {
    fn drop(&mut self) {
        for tray in 0..self.trays.len() as TrayNo {
            drop(self.trays.close(tray));
        }
    }
}

#[test]
fn a_thread_comes_back_to_the_tray_it_used_last() {
    let table = Table::laid(3);
    let taken = [table.take(), table.take()];
    assert_eq!(taken, [Some(0), Some(1)]);

    let back = [0, 1].map(|number| table.lay_back(number));

    assert_eq!(back, [true; 2]);
    assert_eq!(table.take(), Some(1));
}

#[test]
fn a_search_begins_at_the_hint_and_looks_at_few_trays() {
    let table = Table::laid(5);
    for first in [2, 0, 4, 1, 3] {
        table.trays.remember(first);

        let taken = table.take().unwrap();
        assert_eq!(taken, first as usize);
        for next in 1..PROBES {
            table.trays.remember(first);
            let expected = (taken + next) % 5;
            assert_eq!(table.take(), Some(expected));
        }

        table.trays.remember(first);
        assert_eq!(table.take(), None, "the caller asks the ledger for another");
        let back = (0..PROBES).map(|next| table.lay_back((taken + next) % 5));
        assert_eq!(back.filter(|back| *back).count(), PROBES);
    }
}

#[test]
fn a_hint_of_one_pool_is_not_used_for_another() {
    let (large, small) = (Table::laid(2), Table::laid(1));
    large.trays.remember(1);

    assert_eq!(small.take(), Some(0));
    assert_eq!(large.take(), Some(1));
}

#[test]
fn a_thread_that_alternates_between_pools_remembers_a_tray_of_each() {
    // Tests that run at the same time build pools as well, so two of these may share a place.
    let mut places = HashSet::new();
    let mut tables: Vec<_> = (0..HINTS).map(|_| Table::laid(3)).collect();
    tables.retain(|table| places.insert(table.trays.number as usize % HINTS));
    assert!(tables.len() > 1);
    for table in &tables {
        table.trays.remember(2);
    }

    let taken: Vec<_> = tables.iter().map(Table::take).collect();

    assert_eq!(taken, vec![Some(2); tables.len()]);
}

#[test]
fn a_slot_that_was_taken_off_its_tray_is_on_no_tray() {
    let table = Table::laid(2);

    let off = table.trays.close(0).unwrap();

    assert_eq!(off.resource, Some(0));
    assert!(table.trays.close(0).is_none());
    assert!(!table.lay_back(0), "its tray is closed");
    assert_eq!(table.take(), Some(1));
    assert_eq!(table.take(), None);
}

#[test]
fn a_resource_is_never_laid_on_the_tray_of_another_slot() {
    let table = Table::new(1);
    let first = table.trays.open(0, on_tray(7, table.now));
    drop(table.trays.close(0));
    table.trays.open(0, on_tray(8, table.now));

    let refused = first.lay_back(7, 7, table.now);

    assert_eq!(refused, Err(7));
    assert!(first.label(7, Box::new("report".into())).is_err());
    assert_eq!(table.take(), None, "the other slot is out");
    let off = table.trays.close(0).unwrap();
    assert_eq!((off.resource, off.label), (None, None));
}

#[test]
fn a_label_is_on_the_tray_while_its_lease_lives() {
    let table = Table::laid(1);
    let label = |label: &'static str| Box::new(label.into());
    let tray = *table.trays.trays[0].get().unwrap();
    assert_eq!(table.take(), Some(0));
    assert!(tray.label(0, label("report")).is_ok());
    assert!(table.lay_back(0));
    assert_eq!(table.take(), Some(0));
    assert!(tray.label(0, label("import")).is_ok());

    let off = table.trays.close(0).unwrap();

    assert_eq!(off.label, Some(label("import")));
    let relaid = Table::laid(1);
    let tray = *relaid.trays.trays[0].get().unwrap();
    assert_eq!(relaid.take(), Some(0));
    assert!(tray.label(0, label("report")).is_ok());
    assert!(relaid.lay_back(0));
    assert_eq!(relaid.trays.close(0).unwrap().label, None);
}

#[test]
fn the_last_use_of_a_resource_that_did_not_come_back_is_the_one_before() {
    let table = Table::new(1);
    let used_at = table.now - HOUR;
    table.trays.open(
        0,
        OnTray {
            used_at,
            ..on_tray(0, table.now)
        },
    );

    let off = table.trays.close(0).unwrap();

    assert_eq!(off.used_at, used_at, "as it was before");
    assert_eq!((off.since, off.uses), (table.now, 1));
}

#[test]
fn a_resource_that_lay_unused_for_too_long_is_not_lent() {
    let mut table = Table::laid_on_terms(1, |lent| lent.stale_after = nanoseconds(HOUR));

    table.now += HOUR;
    assert_eq!(table.take(), None);
    table.now -= Duration::from_nanos(1);
    assert_eq!(table.take(), Some(0));
}

#[test]
fn a_resource_that_has_expired_is_neither_lent_nor_laid_back() {
    let mut table = Table::laid_on_terms(1, |lent| lent.fit_until = lent.since + HOUR);

    table.now += HOUR;
    assert_eq!(table.take(), None);
    table.now -= Duration::from_nanos(1);
    assert_eq!(table.take(), Some(0));
    table.now += Duration::from_nanos(1);
    assert!(!table.lay_back(0), "the ledger has to close it");
}

#[test]
fn a_resource_is_not_laid_back_after_its_last_use() {
    let table = Table::laid_on_terms(1, |lent| lent.most_uses = 2);

    assert_eq!(table.take(), Some(0));
    assert!(!table.lay_back(0));
}

#[test]
fn the_trays_of_a_pool_that_ended_are_used_by_the_next() {
    let rounds = 200;
    let mut seen = HashSet::new();

    for _ in 0..rounds {
        let trays = Trays::<u8>::for_size(MOST);
        let numbers = || 0..MOST as TrayNo;
        let used = |tray| trays.open(tray, on_tray(0, time::now()));
        seen.extend(numbers().map(|tray| std::ptr::from_ref(used(tray))));
        numbers().for_each(|tray| drop(trays.close(tray)));
    }

    // Tests that run at the same time use trays as well.
    assert!(seen.len() < rounds / 4 * MOST, "{} trays", seen.len());
}

#[test]
fn a_large_pool_has_trays_for_some_of_its_slots() {
    assert_eq!(Trays::<u8>::for_size(3).len(), 3);
    assert_eq!(Trays::<u8>::for_size(1000).len(), MOST);
}

type Numbers = Pool<Closures<u8>>;

fn numbers() -> Numbers {
    let pool = Pool::from_fn(async || Ok::<_, Infallible>(7)).max_size(2);
    pool.build().expect("these settings are valid")
}

/// Makes trips until a slot is on a tray, and locks the ledger. Upkeep may clear the trays in
/// between.
fn lock_with_slot_on_tray(
    pool: &Numbers,
) -> Option<MutexGuard<'_, PoolLedger<Threads<Closures<u8>>>>> {
    (0..1000).find_map(|_| {
        drop(pool.acquire_blocking().expect("opens succeed"));
        let ledger = pool.shared.ledger();
        (!ledger.trays().is_empty()).then_some(ledger)
    })
}

/// Makes a trip on another thread while the ledger is locked. Returns whether the trip ends.
fn ends_with_the_ledger_locked(trip: fn(&Numbers)) -> bool {
    let pool = numbers();
    let Some(ledger) = lock_with_slot_on_tray(&pool) else {
        return false;
    };
    let (told, ended) = mpsc::channel();
    let visitor = pool.clone();
    let thread = thread::spawn(move || {
        trip(&visitor);
        let _ = told.send(());
    });

    let ends = ended.recv_timeout(ENOUGH).is_ok();

    drop(ledger);
    thread.join().expect("the trip ends well");
    ends
}

/// The output of a future that ends at its first poll.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it was to end at once"),
    }
}

#[test]
fn a_trip_by_tray_does_not_lock_the_ledger() {
    let trips: [fn(&Numbers); 4] = [
        |pool| drop(now(pool.acquire()).unwrap()),
        |pool| now(Lease::release(now(pool.acquire()).unwrap())),
        |pool| drop(pool.acquire_blocking().unwrap()),
        |pool| drop(pool.try_acquire().unwrap().unwrap()),
    ];

    assert_eq!(trips.map(ends_with_the_ledger_locked), [true; 4]);
}

#[test]
fn slots_go_on_trays_again_after_a_future_that_watched_every_change() {
    let pool = numbers();
    let mut context = Context::from_waker(Waker::noop());
    let mut watching = Box::pin(pool.wait_for(|_| false));
    assert!(watching.as_mut().poll(&mut context).is_pending());
    assert!(lock_with_slot_on_tray(&pool).is_none(), "it is watched");

    drop(watching);

    assert!(lock_with_slot_on_tray(&pool).is_some());
}
