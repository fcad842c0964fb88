//! Severing: the holders of a closed pool can be cut off, on request only.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cenote::{Lease, Manager, Pool, Severer};
use cenote_testkit::clock::settle;

use crate::support::runtimes::single;

const SECOND: Duration = Duration::from_secs(1);

/// Opens numbers, and counts the severers that exist and those that were used.
#[derive(Clone, Default)]
struct Numbers {
    opened: Arc<AtomicUsize>,
    /// One more for each severer that exists.
    alive: Arc<()>,
    cut: Arc<Mutex<Vec<usize>>>,
    panics: bool,
    /// Every number has to be cleaned, which never ends.
    is_dirty: bool,
}

impl Numbers {
    fn severers(&self) -> usize {
        // This manager, and its clone in the pool.
        Arc::strong_count(&self.alive) - 2
    }
}

impl Manager for Numbers {
    type Resource = usize;
    type Error = String;

    async fn open(&self) -> Result<usize, String> {
        Ok(self.opened.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn needs_cleaning(&self, _: &mut usize) -> bool {
        self.is_dirty
    }

    async fn clean(&self, _: &mut usize) -> Result<(), String> {
        std::future::pending().await
    }

    fn severer(&self, number: &mut usize) -> Option<Severer> {
        let (number, alive) = (*number, Arc::clone(&self.alive));
        let (cut, panics) = (Arc::clone(&self.cut), self.panics);
        Some(Box::new(move || {
            drop(alive);
            cut.lock().expect("no test panics with it").push(number);
            assert!(!panics, "the severer panicked");
        }))
    }
}

fn pool(numbers: &Numbers) -> Pool<Numbers> {
    let pool = Pool::builder(numbers.clone()).build();
    pool.expect("the defaults are valid")
}

#[tokio::test(start_paused = true)]
async fn only_leased_resources_of_a_closed_pool_are_cut_and_each_once() {
    let numbers = Numbers::default();
    let pool = pool(&numbers);
    let leases = [(); 3].map(|()| pool.acquire());
    let mut held = Vec::new();
    for lease in leases {
        held.push(lease.await.unwrap());
    }
    drop(held.remove(1));
    assert_eq!(pool.sever(), 0, "the pool is open");
    assert_eq!(pool.close_within(SECOND).await.leases.len(), 2);
    assert!(numbers.cut.lock().unwrap().is_empty(), "never by default");

    assert_eq!((pool.sever(), pool.sever()), (2, 0));

    let mut cut = numbers.cut.lock().unwrap().clone();
    cut.sort_unstable();
    assert_eq!(cut, [1, 3]);
    drop(held);
    assert!(pool.close_within(SECOND).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn leased_resources_of_the_annex_are_cut_too() {
    let numbers = Numbers::default();
    let builder = Pool::builder(numbers.clone()).annex("writer", numbers.clone(), 1);
    let pool = builder.build().unwrap();
    let held = pool.annex().unwrap().acquire().await.unwrap();
    assert_eq!(pool.close_within(SECOND).await.leases.len(), 1);

    assert_eq!((pool.sever(), pool.sever()), (1, 0));

    assert_eq!(*numbers.cut.lock().unwrap(), [*held]);
}

#[tokio::test(start_paused = true)]
async fn a_severer_is_gone_with_its_resource() {
    let numbers = Numbers::default();
    let pool = pool(&numbers);
    let (one, other, third) = tokio::join!(pool.acquire(), pool.acquire(), pool.acquire());
    let (one, other, third) = (one.unwrap(), other.unwrap(), third.unwrap());
    assert_eq!(numbers.severers(), 3);

    Lease::discard(one);
    settle().await;
    assert_eq!(numbers.severers(), 2);
    assert!(Lease::detach(other) > 0);
    assert_eq!(numbers.severers(), 1);
    drop(third);
    assert_eq!(numbers.severers(), 1, "it is idle");
    drop(pool);
    settle().await;

    assert_eq!(Arc::strong_count(&numbers.alive), 1);
}

#[tokio::test(start_paused = true)]
async fn a_severer_that_panics_does_no_harm() {
    let numbers = Numbers {
        panics: true,
        ..Numbers::default()
    };
    let pool = pool(&numbers);
    let held = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    pool.close();

    assert_eq!(pool.sever(), 0);

    assert_eq!(numbers.cut.lock().unwrap().len(), 2, "both were tried");
    drop(held);
    assert!(pool.close_within(SECOND).await.is_empty());
}

#[test]
fn a_runtime_that_ends_in_the_middle_of_a_clean_takes_the_severer_with_it() {
    let numbers = Numbers {
        is_dirty: true,
        ..Numbers::default()
    };
    let pool = pool(&numbers);
    let runtime = single();
    runtime.block_on(async {
        drop(pool.acquire().await.unwrap());
        settle().await;
    });
    assert_eq!((pool.status().cleaning, numbers.severers()), (1, 1));

    drop(runtime);

    assert_eq!((pool.status().total, numbers.severers()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_next_resource_of_a_slot_has_a_severer_of_its_own() {
    let numbers = Numbers::default();
    let pool = pool(&numbers);
    let first = pool.acquire().await.unwrap();
    pool.invalidate();
    drop(first);
    settle().await;
    assert_eq!(numbers.severers(), 0);

    let _second = pool.acquire().await.unwrap();
    pool.close();

    assert_eq!(pool.sever(), 1);
    assert_eq!(*numbers.cut.lock().unwrap(), [2]);
}
