//! A deadline holds whatever observers, wakers, other futures and other layers do.

use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use cenote::event::{NestedAcquire, Released};
use cenote::scope::{BindError, Bound};
use cenote::{AcquireError, Lease, Observer, Pool, scope};
use cenote_testkit::clock::{advance, eventually, now, settle, timed};
use cenote_testkit::{Call, Gate, GatedPool, Rig, cut};

use crate::support::runtimes::single;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

struct Slow;

impl Observer for Slow {
    fn released(&self, _: &Released<'_>) {
        thread::sleep(500 * MS);
    }

    fn nested_acquire(&self, _: &NestedAcquire<'_>) {
        thread::sleep(2 * SECOND);
    }
}

/// Real time: the observer blocks its thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_observer_of_a_return_delays_no_waiter() {
    let rig = Rig::new(|pool| pool.max_size(1).observer(Arc::new(Slow)));
    let held = rig.acquire().await;
    let pool = rig.pool.clone();
    let waiter = tokio::spawn(async move {
        let asked = now();
        (pool.acquire_within(100 * MS).await.is_ok(), asked.elapsed())
    });
    eventually("one waits", || rig.pool.status().waiting == 1);

    let giver = thread::spawn(move || drop(held));
    let (served, waited) = waiter.await.expect("it does not panic");

    assert!(served && waited < 300 * MS, "{served} after {waited:?}");
    giver.join().expect("it does not panic");
}

/// Real time: the observer blocks its thread, exactly while the pool is in a deadlock. The waiter
/// that found the deadlock is delayed by its own observer.
#[test]
fn a_slow_observer_of_a_circle_delays_the_timeout_of_no_other_waiter() {
    let rig = Rig::new(|pool| pool.max_size(1).observer(Arc::new(Slow)));
    let held = rig.pool.acquire_blocking().expect("one is free");
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let pool = rig.pool.clone();
            thread::spawn(move || {
                let asked = now();
                let ended = pool.acquire_blocking_within(1_500 * MS).map(drop);
                assert!(matches!(ended, Err(AcquireError::TimedOut(_))), "{ended:?}");
                asked.elapsed()
            })
        })
        .collect();
    eventually("they wait", || rig.pool.status().waiting == 3);

    let nested = rig.pool.acquire_blocking_within(3 * SECOND).map(drop);

    assert!(nested.is_err());
    assert_eq!(rig.recorder.of("nested_acquire").len(), 1);
    let waited = waiters
        .into_iter()
        .map(|waiter| waiter.join().expect("it does not panic"));
    let late = waited.filter(|waited| *waited > 1_900 * MS);
    assert!(late.count() <= 1);
    drop(held);
}

type Acquiring = Pin<Box<dyn Future<Output = bool>>>;

/// An acquire that was polled once.
fn polled_once(pool: &GatedPool, limit: Duration) -> Acquiring {
    let pool = pool.clone();
    let mut acquiring: Acquiring =
        Box::pin(async move { pool.acquire_within(limit).await.is_ok() });
    let mut context = Context::from_waker(Waker::noop());
    assert!(acquiring.as_mut().poll(&mut context).is_pending());
    acquiring
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_deadline_has_passed_is_granted_nothing() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let late = polled_once(&rig.pool, 50 * MS);
    let pool = rig.pool.clone();
    let next = tokio::spawn(async move { pool.acquire_within(2 * SECOND).await.map(drop) });

    advance(300 * MS).await;
    drop(held);

    assert!(next.await.expect("it does not panic").is_ok());
    assert!(!late.await, "its time was over");
}

#[tokio::test(start_paused = true)]
async fn acquires_that_are_forgotten_do_not_brick_the_pool() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    for _ in 0..3 {
        // As `mem::forget`: neither polled again nor dropped.
        let _forgotten = ManuallyDrop::new(polled_once(&rig.pool, 50 * MS));
    }

    drop(held);
    advance(100 * MS).await;

    for _ in 0..3 {
        assert!(rig.pool.acquire().await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_is_not_taken_goes_to_the_next_waiter_at_the_deadline() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let late = polled_once(&rig.pool, 400 * MS);
    let pool = rig.pool.clone();
    let next = tokio::spawn(async move { timed(pool.acquire_within(2 * SECOND)).await });
    advance(100 * MS).await;

    drop(held);
    advance(250 * MS).await;
    let told = rig
        .pool
        .acquire_within(Duration::ZERO)
        .await
        .map(drop)
        .unwrap_err();

    let text = told.to_string();
    let line = rig.pool.leases()[0].site.line();
    let granted = format!(
        "1 granted to {}:{line} for up to 250.0ms, not taken yet",
        file!()
    );
    assert!(text.contains(&granted), "{text}");
    assert!(text.ends_with("poll it, or drop it"), "{text}");
    let (lease, waited) = next.await.expect("it does not panic");
    assert!(lease.is_ok());
    assert!(waited >= 400 * MS && waited < 420 * MS, "{waited:?}");
    assert!(!late.await, "it came too late");
}

/// A waker is code of an executor, and may block.
struct Blocking;

impl Wake for Blocking {
    fn wake(self: Arc<Self>) {
        thread::sleep(SECOND);
    }
}

/// Real time: the thread that times out waiters runs their wakers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waker_that_blocks_delays_the_timeouts_of_no_other_pool() {
    let (slow, other) = (Rig::with_max_size(1), Rig::with_max_size(1));
    let (_held, _other_held) = (slow.acquire().await, other.acquire().await);
    let pool = slow.pool.clone();
    let mut blocked = Box::pin(async move { pool.acquire_within(50 * MS).await.is_ok() });
    let waker = Waker::from(Arc::new(Blocking));
    assert!(
        blocked
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );

    let asked = now();
    let ended = other.pool.acquire_within(100 * MS).await.map(drop);
    let waited = asked.elapsed();

    assert!(matches!(ended, Err(AcquireError::TimedOut(_))), "{ended:?}");
    assert!(waited < 400 * MS, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn bind_has_one_deadline_for_the_pinned_resource_and_for_the_pool() {
    let rig = Rig::new(|pool| pool.max_size(1).acquire_timeout(SECOND));
    let pool = rig.pool.clone();

    let (ended, waited) = timed(scope(async move {
        let mut bound = pool.bind().await.expect("one is free");
        assert!(Bound::pin(&mut bound));
        // After most of the deadline the pinned resource leaves its scope, and the pool has no
        // other.
        let other = async {
            tokio::time::sleep(800 * MS).await;
            Bound::unpin(&mut bound);
            drop(bound);
            let _held = pool.acquire().await.expect("it just came back");
            tokio::time::sleep(5 * SECOND).await;
        };
        tokio::select! {
            ended = pool.bind() => ended.map(drop),
            () = other => panic!("it was to end first"),
        }
    }))
    .await;

    let ended = ended.expect_err("the only resource is in use");
    assert!(
        matches!(ended, BindError::Acquire(_) | BindError::InUse { .. }),
        "{ended}"
    );
    assert!(waited >= SECOND && waited < SECOND + 20 * MS, "{waited:?}");
}

#[test]
fn a_blocking_acquire_on_the_only_thread_of_a_runtime_is_refused_at_once() {
    let runtime = single();
    let rig = Rig::with_max_size(1);

    let asked = now();
    let refused = runtime.block_on(async { rig.pool.acquire_blocking().map(drop) });

    assert!(asked.elapsed() < 3 * SECOND, "it waited for its timeout");
    let refused = refused.expect_err("no other task could run");
    assert!(
        matches!(refused, AcquireError::BlockingInRuntime { .. }),
        "{refused}"
    );
    assert!(!refused.is_retryable());
    assert!(refused.to_string().contains("spawn_blocking"), "{refused}");
    drop(runtime.block_on(rig.acquire()));
    let idle = runtime.block_on(async { rig.pool.acquire_blocking().map(drop) });
    assert!(idle.is_ok(), "an idle resource needs no wait");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_blocking_acquire_on_a_worker_has_no_delay() {
    let rig = Rig::with_max_size(1);
    let pool = rig.pool.clone();

    let task = tokio::spawn(async move {
        let asked = now();
        (pool.acquire_blocking().is_ok(), asked.elapsed())
    });
    let (served, waited) = task.await.expect("it does not panic");

    assert!(served && waited < 500 * MS, "{served} after {waited:?}");
}

/// Real time, because the alarm uses it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_of_a_second_and_more_is_as_exact_as_a_timer() {
    let pool = Pool::from_fn(async || Ok::<_, &str>(()))
        .max_size(1)
        .build()
        .unwrap();
    let held = pool.acquire().await.unwrap();
    let mut late = Vec::new();

    for nth in 0..3_u32 {
        let limit = SECOND + nth * 7 * MS;
        let asked = now();
        assert!(pool.acquire_within(limit).await.is_err());
        late.push(asked.elapsed().checked_sub(limit).expect("never early"));
    }

    // A busy machine delays one or the other. A clock that is too coarse delays all of them.
    let best = late.iter().min().expect("three waits ended");
    assert!(*best < 5 * MS, "{late:?}");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_granted_in_time_is_kept_after_the_deadline() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let waiting = rig.wait();
    drop(held);
    let lease = waiting.await.expect("it was served");

    advance(60 * SECOND).await;

    assert_eq!(Lease::id(&lease), 1);
    assert_eq!(rig.pool.status().in_use, 1);
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_any_time_is_told_at_its_first_poll() {
    let rig = Rig::with_max_size(1);
    let _held = rig.acquire().await;

    let late = cut(1, rig.pool.acquire_within(Duration::ZERO)).await;

    assert!(matches!(late, Some(Err(AcquireError::TimedOut(_)))));
}

/// It gets a resource that has died since it came back, and waits again.
#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_twice_has_one_deadline() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let pool = rig.pool.clone();
    let caller = tokio::spawn(async move { timed(pool.acquire_within(2 * SECOND)).await });
    settle().await;
    advance(SECOND).await;
    rig.backend.once(Call::IsBroken, Gate::Pass);
    rig.backend.once(Call::IsBroken, Gate::Fail);
    rig.backend.always(Call::Open, Gate::Hang);

    drop(held);

    let (late, waited) = caller.await.unwrap();
    assert!(matches!(late, Err(AcquireError::TimedOut(_))), "{late:?}");
    assert_eq!(rig.backend.calls(Call::Open), 2, "another one is opened");
    assert!(
        (2 * SECOND..2 * SECOND + 5 * MS).contains(&waited),
        "{waited:?}"
    );
}
