//! No wake-up is lost between a decision of the pool and its delivery.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cenote::event::Released;
use cenote::{AcquireError, Observer, Pool};
use tokio::time::timeout;

const MS: Duration = Duration::from_millis(1);

/// An observer of `released` that takes its time. It runs after the decision which waiter is served
/// next, and before the return ends.
struct Slow(fn() -> Duration);

impl Observer for Slow {
    fn released(&self, _: &Released<'_>) {
        thread::sleep((self.0)());
    }
}

/// From 0 to 3 ms, a different duration each time.
fn some_time() -> Duration {
    static TURN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let turn = TURN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    Duration::from_micros(turn * 997 % 3_000)
}

fn pool_of_one() -> Pool<impl cenote::Manager<Resource = (), Error = cenote::ClosureError>> {
    Pool::from_fn(async || Ok::<_, &str>(()))
        .max_size(1)
        .observer(Arc::new(Slow(some_time)))
        .build()
        .expect("the settings are valid")
}

/// Runs `job` on a thread of its own, after this many microseconds.
fn later(micros: u64, job: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        thread::sleep(Duration::from_micros(micros));
        job();
    })
}

/// One acquire in some hundred never ended: its grant was refused before it was taken, and the
/// waiter left its waker where no event looked for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_whose_grant_is_refused_meanwhile_ends_by_its_deadline() {
    for round in 0..400_u64 {
        let pool = pool_of_one();
        let lease = pool.acquire().await.expect("one is free");
        let waiter = {
            let pool = pool.clone();
            tokio::spawn(async move { pool.acquire_within(8 * MS).await.map(drop) })
        };
        let giver = later(6_000 + round % 40 * 60, || drop(lease));
        let refused = pool.clone();
        let refuser = later(6_000 + round % 37 * 80, move || refused.breaker().trip());

        let ended = timeout(Duration::from_secs(5), waiter).await;

        let ended = ended.unwrap_or_else(|_| panic!("round {round} never ended"));
        match ended.expect("it does not panic") {
            Ok(()) | Err(AcquireError::TimedOut(_) | AcquireError::Unavailable(_)) => {}
            Err(other) => panic!("round {round}: {other}"),
        }
        giver.join().expect("it does not panic");
        refuser.join().expect("it does not panic");
    }
}

/// A waiter that was dropped at that moment left a refusal behind, and the next waiter in its place
/// got it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_hears_nothing_that_was_meant_for_another() {
    for round in 0..200_u64 {
        let pool = pool_of_one();
        let lease = pool.acquire().await.expect("one is free");
        let dropped = {
            let pool = pool.clone();
            let limit = Duration::from_micros(2_000 + round % 20 * 100);
            tokio::spawn(async move { timeout(limit, pool.acquire()).await.map(drop) })
        };
        let giver = later(2_000 + round % 23 * 90, || drop(lease));
        let refused = pool.clone();
        let refuser = later(2_000 + round % 19 * 110, move || {
            refused.breaker().trip();
            refused.breaker().reset();
        });
        dropped.await.expect("it does not panic").ok();
        giver.join().expect("it does not panic");
        refuser.join().expect("it does not panic");

        let held = pool.acquire().await.expect("the breaker is active");
        let next = {
            let pool = pool.clone();
            tokio::spawn(async move { pool.acquire().await.map(drop) })
        };
        while pool.status().waiting == 0 {
            tokio::task::yield_now().await;
        }
        drop(held);

        let next = next.await.expect("it does not panic");
        assert!(next.is_ok(), "round {round}: {next:?}");
    }
}
