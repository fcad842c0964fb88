//! The annex: more resources, which are seen and controlled with those of the pool.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cenote::breaker::ConsecutiveFailures;
use cenote::{AcquireError, Builder, CloseReason, Health, Lease, Observer, Pool, registry};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Backend, GatedManager, Recorder};

const SECOND: Duration = Duration::from_secs(1);

/// A builder of a pool of four with an annex of one.
fn builder() -> Builder<GatedManager> {
    let manager = || GatedManager(Arc::new(Backend::default()));
    let builder = Pool::builder(manager()).name("books").max_size(4);
    builder.annex("writer", manager(), 1)
}

fn whole() -> (Pool<GatedManager>, Pool<GatedManager>) {
    let pool = builder().build().expect("the settings are right");
    let annex = pool.annex().expect("the builder added one").clone();
    (pool, annex)
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn resources_of_both_have_different_numbers() {
    let (pool, annex) = whole();
    let held = [
        annex.acquire().await.unwrap(),
        pool.acquire().await.unwrap(),
        pool.acquire().await.unwrap(),
    ];

    let mut numbers = held.each_ref().map(Lease::id);
    numbers.sort();

    assert_eq!(numbers, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn its_lease_and_its_waiters_are_seen_in_the_pool() {
    let (pool, annex) = whole();
    let held = annex.acquire().await.unwrap();
    let mut waiting = Box::pin(annex.acquire());
    assert!(poll(&mut waiting).is_pending());
    advance(SECOND).await;

    let (status, leases) = (pool.status(), pool.leases());

    assert_eq!((status.max_size, status.in_use, status.total), (4, 1, 1));
    assert_eq!(
        (status.waiting, status.oldest_wait),
        (1, Some(SECOND)),
        "{status:?}"
    );
    assert_eq!(leases.len(), 1);
    assert_eq!(leases[0].held_for, SECOND);
    drop(held);
    drop(waiting.await.unwrap());
    assert_eq!(pool.status().acquired, 2);
}

#[tokio::test(start_paused = true)]
async fn the_leases_of_both_are_listed_the_longest_first() {
    let (pool, annex) = whole();
    let held = [
        pool.acquire().await.unwrap(),
        annex.acquire().await.unwrap(),
        pool.acquire().await.unwrap(),
    ];
    for (nth, lease) in held.iter().enumerate() {
        Lease::label(lease, ["first", "second", "third"][nth]);
    }
    advance(SECOND).await;
    let last = annex.acquire_within(SECOND).await;

    assert!(last.is_err(), "the annex has one");
    let labels = pool
        .leases()
        .into_iter()
        .map(|holder| holder.label.unwrap());
    let mut labels: Vec<_> = labels.collect();
    labels.sort();
    assert_eq!(labels, ["first", "second", "third"]);
    assert!(
        pool.leases()
            .is_sorted_by(|one, next| one.held_for >= next.held_for)
    );
}

#[tokio::test(start_paused = true)]
async fn a_stuck_annex_makes_the_pool_stuck_and_an_unused_one_does_not_count() {
    let pool = builder().stuck_after(7 * SECOND).acquire_timeout(None);
    let pool = pool.build().unwrap();
    let annex = pool.annex().expect("the builder added one").clone();
    assert_eq!(pool.health(), Health::Unproven);
    drop(pool.acquire().await.unwrap());
    assert_eq!(pool.health(), Health::Healthy, "the annex is unproven");

    let held = annex.acquire().await.unwrap();
    assert_eq!(pool.health(), Health::Busy);
    let mut waiting = Box::pin(annex.acquire());
    assert!(poll(&mut waiting).is_pending());
    advance(8 * SECOND).await;

    assert!(matches!(pool.health(), Health::Stuck { .. }));
    drop((held, waiting));
    settle().await;
    assert_eq!(pool.health(), Health::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_close_tells_its_waiters_at_once_and_waits_for_its_lease() {
    let (pool, annex) = whole();
    let held = annex.acquire().await.unwrap();
    let mut waiting = Box::pin(annex.acquire());
    assert!(poll(&mut waiting).is_pending());

    let mut closing = Box::pin(pool.close_within(SECOND));
    assert!(poll(&mut closing).is_pending());
    let told = poll(&mut waiting);

    assert!(matches!(
        told,
        Poll::Ready(Err(AcquireError::Closed { .. }))
    ));
    let left = closing.await;
    assert_eq!((left.leases.len(), left.unfinished), (1, 0), "{left}");
    drop(held);
    assert!(pool.close_within(SECOND).await.is_empty());
    assert!(annex.is_closed());
}

#[tokio::test(start_paused = true)]
async fn it_closes_with_the_last_handle_of_the_pool() {
    let (pool, annex) = whole();
    let mut waiting = Box::pin(async {
        let held = annex.acquire().await.unwrap();
        let second = annex.acquire().await;
        drop(held);
        second
    });
    settle().await;
    assert!(poll(&mut waiting).is_pending());
    settle().await;
    assert!(poll(&mut waiting).is_pending());

    drop(pool);

    assert!(matches!(waiting.await, Err(AcquireError::Closed { .. })));
}

#[tokio::test(start_paused = true)]
async fn observers_hear_of_both_by_their_names() {
    let recorder = Arc::new(Recorder::default());
    let pool = builder().observer(recorder.clone()).build().unwrap();
    let later = Arc::new(Recorder::default());
    let observer: Arc<dyn Observer> = later.clone();
    pool.attach(Arc::clone(&observer));

    drop(pool.annex().unwrap().acquire().await.unwrap());
    assert!(pool.detach(&observer));
    drop(pool.annex().unwrap().acquire().await.unwrap());

    for (recorder, acquired) in [(recorder, 2), (later, 1)] {
        let seen = recorder.of("acquired");
        assert_eq!(seen.len(), acquired, "{seen:?}");
    }
    let listed = registry::pools().into_iter().filter(|listed| {
        let status = listed.status().unwrap();
        listed.name() == "books (writer)" && status.max_size == 1 && status.acquired == 2
    });
    assert_eq!(listed.count(), 1, "listed by itself");
}

#[tokio::test(start_paused = true)]
async fn operations_on_the_pool_reach_it() {
    let (pool, annex) = whole();
    drop(annex.acquire().await.unwrap());

    pool.invalidate();
    settle().await;
    assert_eq!(pool.status().closes.by(CloseReason::Invalidated), 1);

    drop(annex.acquire().await.unwrap());
    pool.retain(|_| false);
    settle().await;
    assert_eq!(pool.status().closes.by(CloseReason::Refused), 1);

    pool.breaker().trip();
    assert!(matches!(
        annex.acquire().await,
        Err(AcquireError::Unavailable(_))
    ));
    pool.breaker().reset();

    pool.suspend();
    let mut waiting = Box::pin(annex.acquire());
    settle().await;
    assert!(poll(&mut waiting).is_pending());
    pool.resume();
    drop(waiting.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_breaker_and_hooks_are_those_of_both() {
    let refuse = async |_: &mut cenote_testkit::Thing| false;
    let pool = builder().breaker(ConsecutiveFailures::new(100));
    let pool = pool.before_acquire(refuse).acquire_timeout(SECOND);
    let pool = pool.build().unwrap();
    let annex = pool.annex().unwrap();

    for _ in 0..2 {
        drop(annex.acquire().await.unwrap());
    }
    let refused = annex.status().closes.by(CloseReason::Refused);
    assert_eq!(refused, 1, "the hook is asked about an idle one");
    pool.breaker().trip();

    assert!(matches!(
        annex.acquire().await,
        Err(AcquireError::Unavailable(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn the_sizes_of_the_pool_do_not_count_it() {
    let pool = builder().max_size(2).min_size(2).build().unwrap();
    let annex = pool.annex().unwrap();
    pool.warm().await.unwrap();
    assert_eq!((pool.status().idle, annex.status().total), (2, 0));

    pool.resize(3).unwrap();

    assert_eq!((pool.status().max_size, pool.config().max_size), (3, 3));
    assert_eq!(annex.status().max_size, 1);
    let mut held = vec![annex.acquire().await.unwrap()];
    for _ in 0..3 {
        held.push(pool.acquire().await.unwrap());
    }
    assert_eq!(pool.status().in_use, 4);
    assert!(pool.acquire().await.is_err());
}
