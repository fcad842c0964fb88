//! Trays by themselves, and a pool whose book is held shut while they are used.

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
            let opened = table.trays.open(slot, terms, asker(), 1, table.now);
            opened.lay_back(Box::new(slot), table.now).unwrap();
        }
        table
    }

    fn take(&self) -> Option<usize> {
        let (number, _) = self.trays.take(Location::caller(), self.now)?;
        Some(*number)
    }

    fn lay_back(&self, number: usize) -> bool {
        let tray = self.trays.trays[number].get().unwrap();
        let laid = tray.lay_back(Box::new(number), self.now);
        laid.is_ok()
    }
}

/// A pool fetches everything before it ends. Trays go to the next one closed.
impl Drop for Table {
    fn drop(&mut self) {
        for slot in 0..self.trays.len() {
            drop(self.trays.close(slot));
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
fn every_tray_is_looked_at_wherever_the_search_begins() {
    let table = Table::laid(4, any);
    for first in [2, 0, 3, 1] {
        LAST.set((table.trays.number, first));

        let mut taken = [(); 4].map(|()| table.take());

        assert_eq!(taken[0], Some(first));
        taken.sort_unstable();
        assert_eq!(taken, [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(table.take(), None);
        assert!((0..4).all(|number| table.lay_back(number)));
    }
}

#[test]
fn where_a_thread_was_last_says_nothing_of_another_pool() {
    let (large, small) = (Table::laid(2, any), Table::laid(1, any));
    LAST.set((large.trays.number, 1));

    assert_eq!(small.take(), Some(0));
}

#[test]
fn what_is_fetched_is_on_no_tray() {
    let table = Table::laid(2, any);

    let fetched = table.trays.close(0).unwrap();

    assert_eq!(fetched.resource.as_deref(), Some(&0));
    assert!(table.trays.close(0).is_none());
    assert_eq!(table.take(), Some(1));
    assert_eq!(table.take(), None);
}

#[test]
fn what_never_came_back_was_never_used() {
    let table = Table::new(1);
    let _ = table.trays.open(0, any(table.now), asker(), 1, table.now);

    let fetched = table.trays.close(0).unwrap();

    assert_eq!(fetched.used_at, None);
    assert_eq!((fetched.since, fetched.uses), (table.now, 1));
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
        let used = |slot| trays.open(slot, any(rt::now()), asker(), 1, rt::now());
        seen.extend((0..MOST).map(|slot| std::ptr::from_ref(used(slot))));
        (0..MOST).for_each(|slot| drop(trays.close(slot)));
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

/// Makes a trip on another thread while nobody can open the book. Does it come to its end?
fn ends_with_the_book_shut(trip: fn(&Numbers)) -> bool {
    let pool: Numbers = Pool::from_fn(async || Ok::<_, Infallible>(7))
        .max_size(2)
        .build()
        .unwrap();
    // Upkeep may come between and fetch it.
    let set_aside = (0..1000).find_map(|_| {
        drop(pool.acquire_blocking().unwrap());
        let book = pool.shared.lock_as_is();
        book.next_aside().is_some().then_some(book)
    });
    let Some(book) = set_aside else {
        return false;
    };
    let (told, ended) = mpsc::channel();
    let visitor = pool.clone();
    let thread = thread::spawn(move || {
        trip(&visitor);
        let _ = told.send(());
    });

    let ends = ended.recv_timeout(ENOUGH).is_ok();

    drop(book);
    thread.join().unwrap();
    ends
}

/// What it comes to at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it was to end at once"),
    }
}

#[test]
fn while_nobody_waits_the_book_is_not_opened() {
    let trips: [fn(&Numbers); 4] = [
        |pool| drop(now(pool.acquire()).unwrap()),
        |pool| now(Lease::release(now(pool.acquire()).unwrap())),
        |pool| drop(pool.acquire_blocking().unwrap()),
        |pool| drop(pool.try_acquire().unwrap().unwrap()),
    ];

    assert_eq!(trips.map(ends_with_the_book_shut), [true; 4]);
}
