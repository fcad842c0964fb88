//! Acquire: one deadline covers the whole call, its call site is always known, and `with` returns
//! the result of its closure.

use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use cenote::error::Phase;
use cenote::{AcquireError, Lease};
use cenote_testkit::clock::{advance, now, timed};
use cenote_testkit::{Call, Gate, GatedManager, Rig, cut};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Asserts that an acquire timed out when it should have. Timers are exact to a millisecond.
#[track_caller]
fn assert_timed_out<T, E>(
    (ended, took): (Result<T, AcquireError<E>>, Duration),
    expected: Duration,
) {
    assert!(matches!(ended, Err(AcquireError::TimedOut(_))));
    assert!(
        expected <= took && took <= expected + 2 * MS,
        "it took {took:?}, not {expected:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn without_an_override_the_timeout_of_the_pool_counts() {
    let rig = Rig::new(|pool| pool.max_size(1).acquire_timeout(3 * SECOND));
    let _held = rig.acquire().await;

    let ended = timed(rig.pool.acquire()).await;

    assert_timed_out(ended, 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_given_to_one_call_overrides_that_of_the_pool() {
    let rig = Rig::new(|pool| pool.max_size(1).acquire_timeout(3 * SECOND));
    let _held = rig.acquire().await;

    let shorter = timed(rig.pool.acquire_within(100 * MS)).await;
    let longer = timed(rig.pool.acquire_within(20 * SECOND)).await;

    assert_timed_out(shorter, 100 * MS);
    assert_timed_out(longer, 20 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_given_to_one_call_overrides_the_timeout_of_the_pool() {
    let rig = Rig::new(|pool| pool.max_size(1).acquire_timeout(3 * SECOND));
    let _held = rig.acquire().await;

    let sooner = timed(rig.pool.acquire_by(now() + 700 * MS)).await;
    let later = timed(rig.pool.acquire_by(now() + 30 * SECOND)).await;

    assert_timed_out(sooner, 700 * MS);
    assert_timed_out(later, 30 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn no_timeout_and_the_longest_duration_both_mean_for_ever() {
    for limit in [None, Some(Duration::MAX)] {
        let rig = Rig::with_max_size(1);
        let held = rig.acquire().await;
        let pool = rig.pool.clone();
        let waiting = tokio::spawn(async move { pool.acquire_within(limit).await });

        tokio::time::sleep(HOUR).await;
        assert!(!waiting.is_finished());
        drop(held);

        assert!(waiting.await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_without_a_timeout_waits_for_ever() {
    let rig = Rig::new(|pool| pool.max_size(1).acquire_timeout(None));
    let held = rig.acquire().await;
    let pool = rig.pool.clone();
    let waiting = tokio::spawn(async move { pool.acquire().await });

    tokio::time::sleep(HOUR).await;
    assert!(!waiting.is_finished());
    drop(held);

    assert!(waiting.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn no_time_at_all_is_enough_for_an_idle_resource() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);
    let passed = now();
    advance(SECOND).await;

    let zero = timed(rig.pool.acquire_within(Duration::ZERO)).await;
    assert_eq!(zero.1, Duration::ZERO);
    assert!(zero.0.is_ok());
    drop(zero);
    let late = rig.pool.acquire_by(passed).await;

    assert!(late.is_ok());
}

#[tokio::test(start_paused = true)]
async fn no_time_at_all_is_over_at_once_and_does_no_harm() {
    let rig = Rig::with_max_size(1);
    let passed = now();
    advance(SECOND).await;

    let zero = timed(rig.pool.acquire_within(Duration::ZERO)).await;
    let late = timed(rig.pool.acquire_by(passed)).await;

    assert_timed_out(zero, Duration::ZERO);
    assert_timed_out(late, Duration::ZERO);
    assert_eq!(rig.pool.status().timed_out, 2);
    assert_eq!(rig.pool.status().waiting, 0);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn one_deadline_covers_all_the_dead_resources_it_meets() {
    let rig = Rig::new(|pool| pool.max_size(8).check_timeout(900 * MS));
    let leases = [
        rig.acquire().await,
        rig.acquire().await,
        rig.acquire().await,
        rig.acquire().await,
    ];
    drop(leases);
    advance(10 * SECOND).await;
    rig.backend.always(Call::Check, Gate::Hang);
    rig.backend.always(Call::Open, Gate::Slow(3 * SECOND));

    let ended = timed(rig.pool.acquire_within(2 * SECOND)).await;

    assert_timed_out(ended, 2 * SECOND);
    assert!(rig.backend.calls(Call::Check) > 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_timeout_tells_how_long_it_waited_and_for_what() {
    let rig = Rig::new(|pool| pool.max_size(1).name("orders"));
    let _held = rig.acquire().await;

    let Err(AcquireError::TimedOut(told)) = rig.pool.acquire_within(40 * MS).await else {
        panic!("the only resource is out");
    };

    assert_eq!((told.pool(), told.phase()), ("orders", Phase::Queued));
    assert!(told.waited() >= 40 * MS && told.waited() <= 42 * MS);
    assert_eq!(told.holders().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_is_taken_before_the_deadline_counts() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut waiting = pin!(rig.pool.acquire_within(10 * MS));
    let first = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_ready())).await;
    assert!(!first);

    tokio::time::advance(9 * MS).await;
    drop(held);

    assert!(waiting.await.is_ok());
    assert_eq!(rig.pool.status().timed_out, 0);
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_is_not_taken_before_the_deadline_is_taken_back() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let mut waiting = pin!(rig.pool.acquire_within(10 * MS));
    let first = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_ready())).await;
    assert!(!first);

    drop(held);
    tokio::time::sleep(SECOND).await;

    assert_eq!(rig.pool.status().idle, 1);
    assert!(matches!(waiting.await, Err(AcquireError::TimedOut(_))));
    assert_eq!(rig.pool.status().timed_out, 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_runs_from_the_first_poll_and_not_from_the_call() {
    let rig = Rig::with_max_size(1);
    let _held = rig.acquire().await;
    let acquiring = rig.pool.acquire_within(100 * MS);

    advance(SECOND).await;
    let ended = timed(acquiring).await;

    assert_timed_out(ended, 100 * MS);
}

#[tokio::test(start_paused = true)]
async fn every_way_in_knows_its_call_site() {
    let rig = Rig::with_max_size(9);
    let pool = &rig.pool;
    let here = Location::caller().file();
    drop(rig.acquire().await);

    let first = line!() + 1;
    let plain = pool.acquire();
    let within = pool.acquire_within(SECOND);
    let until = pool.acquire_by(now() + SECOND);
    let tried = pool.try_acquire().unwrap().unwrap();
    let leases = [plain.await, within.await, until.await].map(Result::unwrap);

    assert_eq!(Lease::site(&tried).file(), here);
    assert_eq!(Lease::site(&tried).line(), first + 3);
    for (nth, lease) in (0..).zip(&leases) {
        assert_eq!(Lease::site(lease).file(), here);
        assert_eq!(Lease::site(lease).line(), first + nth);
    }
    let mut known: Vec<_> = pool.leases().iter().map(|out| out.site.line()).collect();
    known.sort_unstable();
    assert_eq!(known, [first, first + 1, first + 2, first + 3]);
}

#[test]
fn a_thread_that_blocks_is_known_by_its_call_site() {
    let rig = Rig::with_max_size(2);

    let first = line!() + 1;
    let plain = rig.pool.acquire_blocking().unwrap();
    let within = rig.pool.acquire_blocking_within(SECOND).unwrap();

    assert_eq!(Lease::site(&plain).file(), file!());
    assert_eq!(Lease::site(&plain).line(), first);
    assert_eq!(Lease::site(&within).line(), first + 1);
}

#[tokio::test(start_paused = true)]
async fn with_is_known_by_its_call_site() {
    let rig = Rig::with_max_size(1);
    let pool = rig.pool.clone();

    let line = line!() + 1;
    let lending = rig.pool.with(async |_| pool.leases()[0].site);
    let site = lending.await.unwrap();

    assert_eq!((site.file(), site.line()), (file!(), line));
}

#[tokio::test(start_paused = true)]
async fn with_lends_for_the_time_of_the_closure() {
    let rig = Rig::with_max_size(1);

    let seen = rig
        .pool
        .with(async |thing| (thing.serial, rig.pool.status().in_use))
        .await;

    assert_eq!(seen.unwrap(), (1, 1));
    assert_eq!((rig.pool.status().in_use, rig.pool.status().idle), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn with_returns_the_resource_when_the_closure_fails() {
    let rig = Rig::with_max_size(1);

    let told = rig.pool.with(async |_| Err::<(), _>("no such row")).await;

    assert_eq!(told.unwrap(), Err("no such row"));
    assert_eq!((rig.pool.status().in_use, rig.pool.status().idle), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn with_discards_the_resource_when_the_closure_panics() {
    let rig = Rig::with_max_size(1);
    let pool = rig.pool.clone();

    let task = tokio::spawn(async move { pool.with(async |_| panic!("in the closure")).await });
    let ended: Result<Result<(), _>, _> = task.await;

    assert!(ended.unwrap_err().is_panic());
    assert_eq!(
        (rig.pool.status().in_use, rig.pool.status().discarded),
        (0, 1)
    );
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn with_returns_the_resource_when_it_is_dropped_in_the_closure() {
    let rig = Rig::with_max_size(1);
    drop(rig.acquire().await);

    let ended = cut(1, rig.pool.with(async |_| std::future::pending().await)).await;

    assert!(ended.is_none_or(|ended: Result<(), _>| ended.is_err()));
    assert_eq!((rig.pool.status().in_use, rig.pool.status().idle), (0, 1));
    assert_eq!(rig.pool.status().acquired, 2);
}

#[tokio::test(start_paused = true)]
async fn with_never_calls_the_closure_without_a_resource() {
    let rig = Rig::with_max_size(1);
    rig.backend.once(Call::Open, Gate::Fail);

    let told = rig.pool.with(async |_| panic!("there is nothing to lend"));
    let told: Result<(), _> = told.await;

    assert!(matches!(told, Err(AcquireError::Open { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_says_so_whatever_is_asked() {
    let rig = Rig::with_max_size(2);
    drop(rig.acquire().await);

    rig.pool.close();

    let closed = |ended: Result<_, _>| matches!(ended, Err(AcquireError::Closed { .. }));
    assert!(closed(rig.pool.acquire().await.map(drop)));
    assert!(closed(rig.pool.acquire_within(None).await.map(drop)));
    assert!(closed(rig.pool.acquire_by(now()).await.map(drop)));
    assert!(closed(rig.pool.try_acquire().map(drop)));
    assert!(closed(rig.pool.acquire_blocking().map(drop)));
    assert!(closed(rig.pool.with(async |_| ()).await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acquire_can_be_spawned_and_sent() {
    fn assert_send<T: Send>(value: T) -> T {
        value
    }
    let rig = Rig::with_max_size(2);
    let pool = rig.pool.clone();

    let acquiring = assert_send(rig.pool.acquire());
    let within = assert_send(rig.pool.acquire_within(SECOND));
    let until = assert_send(rig.pool.acquire_by(now() + SECOND));
    let task = tokio::spawn(async move { pool.with(async |thing| thing.serial).await });
    let lease: Lease<GatedManager> = acquiring.await.unwrap();
    drop((within, until));

    assert!(Lease::id(&lease) > 0);
    assert!(task.await.unwrap().unwrap() > 0);
}
