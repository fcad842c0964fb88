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
use crate::{Closures, Lease, Pool, rt};

const HOUR: Duration = Duration::from_secs(60 * 60);
const ENOUGH: Duration = Duration::from_secs(20);

fn asker() -> Asker {
    Asker {
        site: Location::caller(),
        owner: None,
    }
}

/// Trays of numbers, and the time by which they are used.
struct Table {
    trays: Trays<usize>,
    now: Moment,
}

impl Table {
    fn new(size: usize) -> Self {
        Self {
            trays: Trays::for_size(size),
            now: rt::now(),
        }
    }

    /// Each number lies on the tray of its slot, on these terms, and was lent once.
    fn laid(size: usize, terms: impl Fn(Moment) -> Terms) -> Self {
        let table = Self::new(size);
        for slot in 0..size {
            let terms = terms(table.now);
            let number = slot as TrayNo;
            let opened = table.trays.open(number, slot, terms, asker(), 1, table.now);
            let laid = opened.lay_back(slot, Box::new(slot), table.now);
            laid.expect("its tray is open");
        }
        table
    }

    fn take(&self) -> Option<usize> {
        let (number, _) = self.trays.take(Location::caller(), self.now)?;
        Some(*number)
    }

    fn lay_back(&self, number: usize) -> bool {
        let tray = self.trays.trays[number].get();
        let tray = tray.expect("it was opened before");
        let laid = tray.lay_back(number, Box::new(number), self.now);
        self.trays.remember(number as TrayNo);
        laid.is_ok()
    }
}

/// A pool clears its trays before it ends: they go to the next one closed.
impl Drop for Table {
    fn drop(&mut self) {
        for tray in 0..self.trays.len() as TrayNo {
            drop(self.trays.close(tray));
        }
    }
}

fn any(_: Moment) -> Terms {
    Terms {
        fit_until: None,
        most_uses: u64::MAX,
        check_after_idle: None,
        home: None,
    }
}

#[test]
fn a_thread_comes_back_to_the_tray_it_used_last() {
    let table = Table::laid(3, any);
    let taken = [table.take(), table.take()];
    assert_eq!(taken, [Some(0), Some(1)]);

    let back = [0, 1].map(|number| table.lay_back(number));

    assert_eq!(back, [true; 2]);
    assert_eq!(table.take(), Some(1));
}

#[test]
fn a_search_begins_anywhere_and_looks_at_few_trays() {
    let table = Table::laid(5, any);
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
        assert_eq!(table.take(), None, "the next one is asked of the ledger");
        let back = (0..PROBES).map(|next| table.lay_back((taken + next) % 5));
        assert_eq!(back.filter(|back| *back).count(), PROBES);
    }
}

#[test]
fn a_hint_says_nothing_of_another_pool() {
    let (large, small) = (Table::laid(2, any), Table::laid(1, any));
    large.trays.remember(1);

    assert_eq!(small.take(), Some(0));
    assert_eq!(large.take(), Some(1));
}

/// Pools that a thread uses in turn do not lose each other's hints.
#[test]
fn a_thread_remembers_a_tray_of_each_of_some_pools() {
    // Tests that run at the same time build pools as well, so two of these may share a place.
    let mut places = HashSet::new();
    let mut tables: Vec<_> = (0..HINTS).map(|_| Table::laid(3, any)).collect();
    tables.retain(|table| places.insert(table.trays.number as usize % HINTS));
    assert!(tables.len() > 1);
    for table in &tables {
        table.trays.remember(2);
    }

    let taken: Vec<_> = tables.iter().map(Table::take).collect();

    assert_eq!(taken, vec![Some(2); tables.len()]);
}

#[test]
fn a_slot_that_was_taken_off_its_tray_is_on_none() {
    let table = Table::laid(2, any);

    let off = table.trays.close(0).unwrap();

    assert_eq!(off.resource.as_deref(), Some(&0));
    assert!(table.trays.close(0).is_none());
    assert!(!table.lay_back(0), "its tray is closed");
    assert_eq!(table.take(), Some(1));
    assert_eq!(table.take(), None);
}

#[test]
fn a_resource_is_never_laid_on_the_tray_of_another_slot() {
    let table = Table::new(1);
    let first = table
        .trays
        .open(0, 7, any(table.now), asker(), 1, table.now);
    drop(table.trays.close(0));
    let _second = table
        .trays
        .open(0, 8, any(table.now), asker(), 1, table.now);

    let refused = first.lay_back(7, Box::new(7), table.now);

    assert_eq!(refused, Err(Box::new(7)));
    assert!(first.label(7, Box::new("report".into())).is_err());
    assert_eq!(table.take(), None, "the other slot is out");
    let off = table.trays.close(0).unwrap();
    assert_eq!((off.resource, off.label), (None, None));
}

#[test]
fn a_label_is_on_the_tray_while_its_lease_lives() {
    let table = Table::laid(1, any);
    let label = |label: &'static str| Box::new(label.into());
    let tray = *table.trays.trays[0].get().unwrap();
    assert_eq!(table.take(), Some(0));
    assert!(tray.label(0, label("report")).is_ok());
    assert!(table.lay_back(0));
    assert_eq!(table.take(), Some(0));
    assert!(tray.label(0, label("import")).is_ok());

    let off = table.trays.close(0).unwrap();

    assert_eq!(off.label, Some(label("import")));
    let relaid = Table::laid(1, any);
    let tray = *relaid.trays.trays[0].get().unwrap();
    assert_eq!(relaid.take(), Some(0));
    assert!(tray.label(0, label("report")).is_ok());
    assert!(relaid.lay_back(0));
    assert_eq!(relaid.trays.close(0).unwrap().label, None);
}

#[test]
fn a_resource_that_never_came_back_was_not_used() {
    let table = Table::new(1);
    let _ = table
        .trays
        .open(0, 0, any(table.now), asker(), 1, table.now);

    let off = table.trays.close(0).unwrap();

    assert_eq!(off.used_at, None);
    assert_eq!((off.since, off.uses), (table.now, 1));
}

#[test]
fn a_resource_is_lent_until_it_is_stale_and_not_when_it_is() {
    let mut table = Table::laid(1, |now| Terms {
        check_after_idle: Some(HOUR),
        ..any(now)
    });

    table.now += HOUR;
    assert_eq!(table.take(), None);
    table.now -= Duration::from_nanos(1);
    assert_eq!(table.take(), Some(0));
}

#[test]
fn a_resource_changes_hands_until_its_time_is_over_and_not_then() {
    let mut table = Table::laid(1, |now| Terms {
        fit_until: Some(now + HOUR),
        ..any(now)
    });

    table.now += HOUR;
    assert_eq!(table.take(), None);
    table.now -= Duration::from_nanos(1);
    assert_eq!(table.take(), Some(0));
    table.now += Duration::from_nanos(1);
    assert!(!table.lay_back(0), "it is for the ledger now");
}

#[test]
fn the_last_use_comes_before_the_ledger() {
    let table = Table::laid(1, |now| Terms {
        most_uses: 2,
        ..any(now)
    });

    assert_eq!(table.take(), Some(0));
    assert!(!table.lay_back(0));
}

#[test]
fn trays_that_were_left_serve_the_next_pool() {
    let rounds = 200;
    let mut seen = HashSet::new();

    for _ in 0..rounds {
        let trays = Trays::<u8>::for_size(MOST);
        let numbers = || 0..MOST as TrayNo;
        let used = |tray| trays.open(tray, 0, any(rt::now()), asker(), 1, rt::now());
        seen.extend(numbers().map(|tray| std::ptr::from_ref(used(tray))));
        numbers().for_each(|tray| drop(trays.close(tray)));
    }

    // Others test beside this.
    assert!(seen.len() < rounds / 4 * MOST, "{} trays", seen.len());
}

#[test]
fn a_large_pool_has_trays_for_some_of_its_slots() {
    assert_eq!(Trays::<u8>::for_size(3).len(), 3);
    assert_eq!(Trays::<u8>::for_size(1000).len(), MOST);
}

type Numbers = Pool<Closures<u8>>;

/// Makes a trip on another thread while the ledger is locked. Returns whether it comes to its end.
fn ends_with_the_ledger_locked(trip: fn(&Numbers)) -> bool {
    let pool: Numbers = Pool::from_fn(async || Ok::<_, Infallible>(7))
        .max_size(2)
        .build()
        .expect("these settings are valid");
    // Upkeep may come between and clear the trays.
    let on_tray = (0..1000).find_map(|_| {
        drop(pool.acquire_blocking().expect("opens succeed"));
        let ledger = pool.shared.ledger();
        (!ledger.trays().is_empty()).then_some(ledger)
    });
    let Some(ledger) = on_tray else {
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
fn while_no_waiter_is_queued_the_ledger_is_not_locked() {
    let trips: [fn(&Numbers); 4] = [
        |pool| drop(now(pool.acquire()).unwrap()),
        |pool| now(Lease::release(now(pool.acquire()).unwrap())),
        |pool| drop(pool.acquire_blocking().unwrap()),
        |pool| drop(pool.try_acquire().unwrap().unwrap()),
    ];

    assert_eq!(trips.map(ends_with_the_ledger_locked), [true; 4]);
}
