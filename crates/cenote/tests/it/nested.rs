//! Nested acquires: holders that wait for each other are found within a second, denied, or left
//! alone, as `nested` says.

use std::sync::Arc;
use std::time::Duration;

use cenote::config::Nested;
use cenote::{AcquireError, Lease};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Fault, GatedManager, GatedPool, Rig};
use tokio::sync::Barrier;
use tokio::task::JoinHandle;

use crate::support::runtimes::paused;

const SECOND: Duration = Duration::from_secs(1);

/// By then every waiter has looked for a circle.
const LOOK: Duration = Duration::from_millis(1_010);

type Second = Result<Lease<GatedManager>, AcquireError<Fault>>;

/// Acquires a lease, meets the others, and asks for another.
fn greedy(pool: &GatedPool, all_hold: &Arc<Barrier>) -> JoinHandle<Second> {
    let (pool, all_hold) = (pool.clone(), Arc::clone(all_hold));
    tokio::spawn(async move {
        let _first = pool.acquire().await?;
        all_hold.wait().await;
        pool.acquire().await
    })
}

fn rig(max_size: usize, nested: Nested) -> Rig {
    Rig::new(|pool| pool.max_size(max_size).nested(nested))
}

fn text(second: Second) -> String {
    match second {
        Ok(lease) => panic!("it was lent {}", Lease::id(&lease)),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn holders_that_all_wait_for_each_other_are_reported_before_any_timeout() {
    let rig = Rig::with_max_size(3);
    let all_hold = Arc::new(Barrier::new(3));

    let tasks = [(); 3].map(|()| greedy(&rig.pool, &all_hold));
    advance(LOOK).await;

    let events = rig.recorder.of("nested_acquire");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(
        events[0].starts_with(&format!("nested_acquire holders=3 {}:", file!())),
        "{events:?}"
    );
    assert_eq!(rig.pool.status().timed_out, 0);
    for task in tasks {
        task.abort();
    }
    settle().await;
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_a_nested_acquire_says_so_and_how_to_mend_it() {
    let rig = Rig::with_max_size(2);
    let all_hold = Arc::new(Barrier::new(2));

    let [first, second] = [(); 2].map(|()| greedy(&rig.pool, &all_hold));
    let seconds = [first.await.unwrap(), second.await.unwrap()];

    // The lease of the first waiter comes back too late for the second: their deadlines are the
    // same.
    let mut nested = seconds.iter().filter_map(|second| match second {
        Err(AcquireError::TimedOut(timed_out)) if timed_out.is_nested() => Some(timed_out),
        _ => None,
    });
    let text = nested
        .next()
        .expect("the first one to time out says so")
        .to_string();
    assert!(
        text.ends_with(
            "; nested acquire: every lease was taken by a task that now waits for this pool: \
             take one lease per task and pass it along"
        ),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1);
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_its_own_lease_is_reported() {
    let rig = Rig::with_max_size(1);
    let pool = rig.pool.clone();

    let task = tokio::spawn(async move {
        let _first = pool.acquire().await.unwrap();
        pool.acquire_within(2 * SECOND).await
    });
    advance(LOOK).await;

    assert_eq!(rig.recorder.of("nested_acquire").len(), 1);
    assert!(text(task.await.unwrap()).contains("nested acquire"));
}

#[tokio::test(start_paused = true)]
async fn a_circle_that_is_closed_by_a_grant_is_reported_too() {
    let rig = Rig::with_max_size(1);
    let pool = rig.pool.clone();

    let task = tokio::spawn(async move {
        let both = tokio::join!(pool.acquire(), pool.acquire_within(2 * SECOND));
        both.1
    });
    advance(LOOK).await;

    assert_eq!(rig.pool.status().in_use, 1);
    assert_eq!(
        rig.recorder.of("nested_acquire").len(),
        1,
        "the one lease is held by a task that waits"
    );
    assert!(text(task.await.unwrap()).contains("nested acquire"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_reported_while_one_holder_does_not_wait() {
    let rig = Rig::with_max_size(3);
    let innocent = rig.acquire().await;
    let all_hold = Arc::new(Barrier::new(2));

    let tasks = [(); 2].map(|()| greedy(&rig.pool, &all_hold));
    settle().await;

    assert_eq!(rig.pool.status().waiting, 2);
    assert!(rig.recorder.of("nested_acquire").is_empty());
    drop(innocent);
    for task in tasks {
        drop(task.await.unwrap().unwrap());
    }
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_not_called_nested_while_one_holder_does_not_wait() {
    let rig = Rig::with_max_size(2);
    let innocent = rig.acquire().await;
    let all_hold = Arc::new(Barrier::new(1));

    let second = greedy(&rig.pool, &all_hold).await.unwrap();

    assert!(!text(second).contains("nested acquire"));
    drop(innocent);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_reported_while_there_is_room_to_open_another() {
    let rig = Rig::with_max_size(3);
    let all_hold = Arc::new(Barrier::new(2));

    let tasks = [(); 2].map(|()| greedy(&rig.pool, &all_hold));
    for task in tasks {
        drop(task.await.unwrap().unwrap());
    }

    assert!(rig.recorder.of("nested_acquire").is_empty());
    rig.assert_full_service().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_holds_nothing_is_not_nested() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let pool = rig.pool.clone();

    let waiter = tokio::spawn(async move { pool.acquire().await });

    assert!(!text(waiter.await.unwrap()).contains("nested acquire"));
    assert!(rig.recorder.of("nested_acquire").is_empty());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn two_leases_in_one_task_are_fine_on_a_larger_pool() {
    let rig = Rig::with_max_size(2);
    let pool = rig.pool.clone();

    let task = tokio::spawn(async move {
        let first = pool.acquire().await.unwrap();
        let second = pool.acquire().await.unwrap();
        (Lease::id(&first), Lease::id(&second))
    });

    assert_eq!(task.await.unwrap(), (1, 2));
    assert!(rig.recorder.of("nested_acquire").is_empty());
}

#[tokio::test(start_paused = true)]
async fn deny_fails_the_second_acquire_at_once_whatever_is_idle_and_names_the_first() {
    let rig = Rig::new(|pool| pool.name("orders").max_size(3).nested(Nested::Deny));
    let pool = rig.pool.clone();

    let task = tokio::spawn(async move {
        let (first, line) = (pool.acquire().await.unwrap(), line!());
        (pool.acquire().await, pool.try_acquire().err(), first, line)
    });
    let (second, tried, first, line) = task.await.unwrap();

    let error = second.unwrap_err();
    assert!(!error.is_retryable());
    assert_eq!(error.pool(), "orders");
    let site = Lease::site(&first);
    assert_eq!((site.file(), site.line()), (file!(), line));
    assert_eq!(
        error.to_string(),
        format!(
            "nested acquire on pool `orders`: this task holds a lease from {site} already: \
             pass it along, or allow it by `nested`"
        )
    );
    assert!(matches!(tried, Some(AcquireError::Nested { held, .. }) if held == site));
    let status = rig.pool.status();
    assert_eq!((status.waited, status.acquired), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn deny_lets_a_task_acquire_again_once_it_holds_nothing() {
    let rig = rig(1, Nested::Deny);

    drop(rig.acquire().await);
    Lease::discard(rig.acquire().await);
    drop(Lease::detach(rig.acquire().await));

    drop(rig.acquire().await);
    assert_eq!(rig.pool.status().acquired, 4);
}

#[tokio::test(start_paused = true)]
async fn deny_ignores_the_leases_of_other_tasks() {
    let rig = rig(4, Nested::Deny);
    let all_hold = Arc::new(Barrier::new(4));

    let tasks = [(); 4].map(|()| {
        let (pool, all_hold) = (rig.pool.clone(), Arc::clone(&all_hold));
        tokio::spawn(async move {
            let lease = pool.acquire().await;
            all_hold.wait().await;
            lease.is_ok()
        })
    });

    for task in tasks {
        assert!(task.await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn allow_says_nothing() {
    let rig = rig(2, Nested::Allow);
    let all_hold = Arc::new(Barrier::new(2));

    let [first, second] = [(); 2].map(|()| greedy(&rig.pool, &all_hold));
    let seconds = [first.await.unwrap(), second.await.unwrap()];

    let failed: Vec<_> = seconds.into_iter().filter_map(Result::err).collect();
    assert!(!failed.is_empty());
    let nested = failed
        .iter()
        .filter(|error| error.to_string().contains("nested acquire"));
    assert_eq!(nested.count(), 0);
    assert!(rig.recorder.of("nested_acquire").is_empty());
}

#[test]
fn a_nested_acquire_inside_block_on_is_found_as_well() {
    let (reporting, denying) = (Rig::with_max_size(1), rig(2, Nested::Deny));

    let (reported, denied) = paused().block_on(async {
        let _held = reporting.acquire().await;
        let reported = reporting.pool.acquire_within(SECOND).await;
        let _other = denying.acquire().await;
        (reported, denying.pool.acquire().await)
    });

    assert!(text(reported).contains("; nested acquire: "));
    assert_eq!(reporting.recorder.of("nested_acquire").len(), 1);
    assert!(matches!(denied, Err(AcquireError::Nested { .. })));
}

#[test]
fn a_thread_that_blocks_for_its_own_lease_is_found() {
    let (reporting, denying) = (Rig::with_max_size(1), rig(2, Nested::Deny));
    let limit = Duration::from_millis(20);
    let _held = reporting.pool.acquire_blocking().unwrap();
    let _other = denying.pool.acquire_blocking().unwrap();

    let reported = reporting.pool.acquire_blocking_within(limit);
    let denied = denying.pool.acquire_blocking();

    assert!(text(reported).contains("; nested acquire: "));
    assert_eq!(reporting.recorder.of("nested_acquire").len(), 1);
    assert!(matches!(denied, Err(AcquireError::Nested { .. })));
}

#[test]
fn threads_that_block_for_each_other_are_found_and_other_threads_are_not_denied() {
    let (reporting, denying) = (Rig::with_max_size(2), rig(2, Nested::Deny));
    let all_hold = std::sync::Barrier::new(2);
    let limit = Duration::from_millis(20);

    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                let _first = reporting.pool.acquire_blocking().unwrap();
                let _other = denying.pool.acquire_blocking().unwrap();
                all_hold.wait();
                let _ = reporting.pool.acquire_blocking_within(limit);
            });
        }
    });

    assert_eq!(reporting.recorder.of("nested_acquire").len(), 1);
    assert_eq!(denying.pool.status().acquired, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_blocks_while_it_holds_a_lease_is_found() {
    let rig = rig(2, Nested::Deny);
    let pool = rig.pool.clone();

    let task = tokio::spawn(async move {
        let _first = pool.acquire().await.unwrap();
        tokio::task::block_in_place(|| pool.acquire_blocking())
    });

    assert!(matches!(
        task.await.unwrap(),
        Err(AcquireError::Nested { .. })
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_thread_of_the_runtime_that_tries_while_it_holds_a_lease_is_found() {
    let rig = rig(2, Nested::Deny);
    let (pool, other) = (rig.pool.clone(), rig.acquire().await);
    drop(other);

    let thread = tokio::task::spawn_blocking(move || {
        let _first = pool.acquire_blocking().unwrap();
        pool.try_acquire().err()
    });

    assert!(matches!(
        thread.await.unwrap(),
        Some(AcquireError::Nested { .. })
    ));
}

/// One task asks for three leases at once while both resources are out; then these are returned as
/// the test wants it.
async fn ask_for_three(rig: &Rig, give_back: impl FnOnce([Lease<GatedManager>; 2])) {
    let held = [rig.acquire().await, rig.acquire().await];
    let pool = rig.pool.clone();
    let task = tokio::spawn(async move {
        let _all = tokio::join!(pool.acquire(), pool.acquire(), pool.acquire());
    });
    settle().await;
    give_back(held);
    advance(LOOK).await;
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_closes_a_circle_is_reported_though_fewer_wait_than_there_are_resources() {
    let rig = rig(2, Nested::Report);

    ask_for_three(&rig, drop).await;

    assert_eq!(rig.recorder.of("nested_acquire").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_grant_is_no_circle_while_one_holder_does_not_wait() {
    let rig = rig(2, Nested::Report);
    let mut kept = None;

    ask_for_three(&rig, |[first, second]| {
        drop(first);
        kept = Some(second);
    })
    .await;

    assert_eq!(rig.pool.status().acquired, 3);
    assert!(rig.recorder.of("nested_acquire").is_empty());
}
