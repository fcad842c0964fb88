//! A hundred thousand keys, of which a hundred are busy. The example `overhead` has the figures.

use std::future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::Manager;
use cenote_keyed::Pools;
use tokio::time::advance;

struct Cheap;

static OPENED: AtomicUsize = AtomicUsize::new(0);

impl Manager for Cheap {
    type Resource = ();
    type Error = String;

    fn open(&self) -> impl Future<Output = Result<(), String>> + Send {
        OPENED.fetch_add(1, Ordering::Relaxed);
        future::ready(Ok(()))
    }
}

#[tokio::test(start_paused = true)]
async fn of_very_many_keys_only_those_in_use_are_kept_and_the_busy_ones_keep_their_resources() {
    const KEYS: u32 = 100_000;
    const BUSY: u32 = 100;
    let pools = Pools::builder(|_: &u32| Cheap);
    let pools = pools.total(400).max_size(4).build().unwrap();

    let mut most = 0;
    for key in BUSY..KEYS {
        if key % 20 == 0 {
            advance(Duration::from_millis(1)).await;
        }
        drop(pools.acquire(&key).await.unwrap());
        drop(pools.acquire(&(key % BUSY)).await.unwrap());
        if key % 1000 == 0 {
            most = most.max(pools.status().keys);
        }
    }

    let status = pools.status();
    assert!(most <= 1500, "{most} keys were kept");
    assert_eq!((status.held, status.waiting), (400, 0));
    // A busy key keeps its resource, because another is always unused for longer.
    let opened = OPENED.load(Ordering::Relaxed);
    assert!(opened <= KEYS as usize + 500, "{opened} opens");
}
