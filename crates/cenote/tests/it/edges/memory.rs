//! Memory and work that do not grow.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use cenote_testkit::clock::advance;
use cenote_testkit::{Call, Gate, Rig};

const MS: Duration = Duration::from_millis(1);

/// Counts how many of its kind are alive.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn waker(alive: &Arc<AtomicUsize>) -> Waker {
        alive.fetch_add(1, Ordering::Relaxed);
        Waker::from(Arc::new(Self(Arc::clone(alive))))
    }
}

impl Wake for Counted {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Polls `future` a thousand times, each time with another waker. Returns how many wakers are kept.
fn wakers_kept<T>(future: impl Future<Output = T>) -> usize {
    let alive = Arc::new(AtomicUsize::new(0));
    let mut future = pin!(future);
    for _ in 0..1_000 {
        let waker = Counted::waker(&alive);
        let ended = future.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(ended.is_pending());
    }
    alive.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn futures_that_watch_the_pool_keep_one_waker_each_however_often_they_are_polled() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = wakers_kept(rig.pool.acquire());
    let closing = wakers_kept(rig.pool.close_within(Duration::from_secs(60)));
    drop(held);

    let cold = Rig::new(|pool| pool.min_size(1));
    cold.backend.always(Call::Open, Gate::Hang);
    let warming = wakers_kept(cold.pool.warm());

    // A timer keeps one as well.
    assert!(waiting <= 2, "{waiting}");
    assert!(closing <= 2, "{closing}");
    assert!(warming <= 2, "{warming}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_held_for_long_does_not_make_the_pool_open_others() {
    let rig = Rig::new(|pool| pool.max_size(5).max_lifetime(200 * MS).idle_timeout(None));
    let held = rig.acquire().await;

    for _ in 0..40 {
        advance(50 * MS).await;
    }
    drop(held);
    for _ in 0..40 {
        advance(50 * MS).await;
    }

    assert_eq!(rig.backend.calls(Call::Open), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_in_use_has_its_successor_opened_before_it_expires() {
    let rig = Rig::new(|pool| {
        pool.max_size(5)
            .max_lifetime(Duration::from_secs(10))
            .lifetime_jitter(0.0)
            .check_after_idle(None)
    });

    let mut opened_late = 0;
    for _ in 0..300 {
        let opened = rig.pool.status().opened;
        let lease = rig.acquire().await;
        opened_late += usize::from(opened > 0 && lease.serial > opened);
        advance(50 * MS).await;
        drop(lease);
        advance(50 * MS).await;
    }

    assert_eq!(opened_late, 0, "no caller had to wait for an open");
    assert!(
        rig.backend.calls(Call::Open) <= 5,
        "{}",
        rig.backend.calls(Call::Open)
    );
}

/// A waiter that is polled by many wakers in turn is woken by the last one only.
#[tokio::test(start_paused = true)]
async fn the_waker_of_the_last_poll_is_woken() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut waiting = pin!(rig.pool.acquire());
    let mut context = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending());

    let mut polls = 0;
    let lease = poll_fn(|context| {
        polls += 1;
        if polls == 2 {
            return Poll::Ready(None);
        }
        let ended = waiting.as_mut().poll(context);
        assert!(ended.is_pending(), "the lease is still out");
        Poll::Pending::<Option<()>>
    });
    let mut lease = pin!(lease);
    assert!(futures_poll(lease.as_mut()).await.is_pending());
    drop(held);

    assert_eq!(lease.await, None, "it was polled again");
}

/// Polls once, with the waker of the task.
async fn futures_poll<F: Future + Unpin>(mut future: F) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut future).poll(context))).await
}
