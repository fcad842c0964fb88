//! A subscriber is user code: one that panics, blocks or calls the pool does no harm.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cenote::registry;
use cenote_testkit::Rig;
use cenote_testkit::clock::advance;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const SECOND: Duration = Duration::from_secs(1);

/// Calls this at each event, and at the begin, enter, exit and end of each span.
struct Calls<F>(F);

impl<F: Fn(&str) + Send + Sync + 'static> Subscriber for Calls<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "cenote"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        (self.0)("new_span");
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        (self.0)("event");
    }

    fn enter(&self, _: &Id) {
        (self.0)("enter");
    }

    fn exit(&self, _: &Id) {
        (self.0)("exit");
    }

    fn try_close(&self, _: Id) -> bool {
        (self.0)("close");
        true
    }
}

/// A life with a wait that is served, one that times out, a leak and a close.
async fn live() {
    let rig = Rig::new(|pool| pool.max_size(1).leak_after(SECOND));
    let held = rig.acquire().await;
    let served = rig.wait();
    advance(2 * SECOND).await;
    drop(held);
    let served = served.await.expect("it is served");
    assert!(rig.pool.acquire().await.is_err(), "it times out");
    drop(served);
    let status = rig.pool.status();
    assert_eq!((status.idle, status.in_use, status.total), (1, 0, 1));
    assert_eq!((status.waiting, status.released), (0, 2));
    drop(rig.acquire().await);
    assert!(rig.pool.close_within(SECOND).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_costs_no_resource_and_no_caller() {
    std::panic::set_hook(Box::new(|_| {}));
    for place in ["new_span", "enter", "event", "close"] {
        let panics = move |here: &str| assert_ne!(here, place, "as the test wants");
        let _guard = tracing::subscriber::set_default(Calls(panics));

        live().await;
    }
    drop(std::panic::take_hook());
}

#[tokio::test(start_paused = true)]
async fn no_lock_is_held_while_a_subscriber_is_called() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let calls = Arc::clone(&seen);
    let looks = move |place: &str| {
        // Each of these would wait for ever for a lock that this thread holds.
        for pool in registry::pools() {
            let _ = (pool.status(), pool.slots(), pool.advice(), pool.waiters(9));
            let _ = pool.config();
        }
        calls.lock().unwrap().push(place.to_owned());
    };
    let _guard = tracing::subscriber::set_default(Calls(looks));

    live().await;

    let seen = seen.lock().unwrap();
    for place in ["new_span", "enter", "event", "exit", "close"] {
        assert!(seen.iter().any(|one| one == place), "{place}");
    }
}

#[test]
fn a_subscriber_that_blocks_delays_its_own_caller_only() {
    let (entered, enters) = mpsc::channel();
    let (leave, leaves) = mpsc::channel::<()>();
    let (entered, leaves) = (Mutex::new(entered), Mutex::new(leaves));
    let blocks = move |place: &str| {
        if place == "event" {
            entered.lock().unwrap().send(()).unwrap();
            let _ = leaves.lock().unwrap().recv();
        }
    };
    let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()))
        .max_size(1)
        .build()
        .unwrap();
    let held = pool.acquire_blocking().unwrap();

    let late = thread::spawn({
        let pool = pool.clone();
        move || {
            let _guard = tracing::subscriber::set_default(Calls(blocks));
            let late = pool.acquire_blocking_within(Duration::from_millis(5));
            late.is_err()
        }
    });
    enters.recv().expect("the timeout is told");
    drop(held);
    drop(pool.acquire_blocking().unwrap());
    let other = pool.acquire_blocking().unwrap();
    assert!(
        pool.acquire_blocking_within(Duration::from_millis(5))
            .is_err(),
        "others time out"
    );
    drop(other);

    drop(leave);
    assert!(late.join().unwrap());
}
