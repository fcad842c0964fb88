//! Many keys on many threads: no caller is forgotten, and no place is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::Manager;
use cenote_keyed::Pools;
use cenote_testkit::clock::eventually;
use fastrand::Rng;
use tokio::runtime::Builder;
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::LIMIT;

/// Resources that count themselves.
#[derive(Clone, Default)]
struct Counted(Arc<Counts>);

#[derive(Default)]
struct Counts {
    alive: AtomicUsize,
    peak: AtomicUsize,
}

struct Thing(Arc<Counts>);

impl Thing {
    fn new(counts: &Arc<Counts>) -> Self {
        let alive = counts.alive.fetch_add(1, Ordering::SeqCst) + 1;
        counts.peak.fetch_max(alive, Ordering::SeqCst);
        Self(Arc::clone(counts))
    }
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Manager for Counted {
    type Resource = Thing;
    type Error = String;

    async fn open(&self) -> Result<Thing, String> {
        let thing = Thing::new(&self.0);
        yield_now().await;
        match fastrand::u8(..50) {
            0 => Err("refused".to_owned()),
            _ => Ok(thing),
        }
    }

    fn needs_cleaning(&self, _: &mut Thing) -> bool {
        fastrand::u8(..4) == 0
    }

    async fn clean(&self, _: &mut Thing) -> Result<(), String> {
        yield_now().await;
        Ok(())
    }

    async fn close(&self, thing: Thing) -> Result<(), String> {
        yield_now().await;
        drop(thing);
        Ok(())
    }
}

/// Acquires and returns at random, and gives up at random. Every wait to the end must end well.
async fn work(pools: Pools<u32, Counted>, keys: u32, rounds: usize, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    for _ in 0..rounds {
        let key = rng.u32(..keys);
        let lease = match rng.u8(..4) {
            0 => {
                let patience = Duration::from_micros(rng.u64(..300));
                let tried = timeout(patience, pools.acquire_within(&key, None)).await;
                tried.ok().and_then(Result::ok)
            }
            _ => match pools.acquire_within(&key, LIMIT).await {
                Ok(lease) => Some(lease),
                Err(error) if error.to_string().contains("refused") => None,
                Err(error) => panic!("{error}\n{:?}\n{:#?}", pools.status(), pools.statuses()),
            },
        };
        for _ in 0..rng.u8(..3) {
            yield_now().await;
        }
        drop(lease);
    }
}

fn stress(keys: u32, total: usize, max_size: usize, tasks: u64, rounds: usize) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    let counted = Counted::default();
    let manager = counted.clone();
    let pools = Pools::builder(move |_: &u32| manager.clone())
        .total(total)
        .max_size(max_size)
        .build()
        .unwrap();
    let seed = fastrand::u64(..);
    println!("seed {seed}");

    runtime.block_on(async {
        let all: Vec<_> = (0..tasks)
            .map(|nth| tokio::spawn(work(pools.clone(), keys, rounds, seed ^ nth)))
            .collect();
        for task in all {
            task.await.unwrap();
        }
    });

    let peak = counted.0.peak.load(Ordering::SeqCst);
    assert!(peak <= total, "{peak} existed at once, of {total}");
    eventually("no wait is left", || pools.status().waiting == 0);
    let left = runtime.block_on(pools.close_within(LIMIT));
    assert!(left.is_empty(), "{left:?}");
    assert_eq!((pools.status().held, pools.status().leaving), (0, 0));
    assert_eq!(counted.0.alive.load(Ordering::SeqCst), 0);
}

#[test]
fn more_keys_than_places_on_many_threads() {
    stress(8, 3, 3, 16, 150);
}

#[test]
fn one_place_for_many_keys_on_many_threads() {
    stress(5, 1, 1, 8, 100);
}

#[test]
fn fewer_keys_than_places_on_many_threads() {
    stress(3, 7, 4, 16, 200);
}
