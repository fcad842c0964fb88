//! Order and limits, as CMAP, harbor-next and pgx test them: which waiter is next, which opens wait
//! behind `max_opening`, which callers hold up others, and when old resources are replaced.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cenote::AcquireError;
use cenote::config::Nested;
use cenote_testkit::clock::{now, settle};
use cenote_testkit::{Backend, Call, Gate, GatedManager, GatedPool, Rig};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::support::openings::Openings;
use crate::support::rigs::compete;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// CMAP `wait-queue-fairness`: one resource, and four waiters are served in the order in which they
/// came.
#[tokio::test(start_paused = true)]
async fn cmap_wait_queue_is_fair() {
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for nth in 0..4 {
        let (pool, order) = (rig.pool.clone(), Arc::clone(&order));
        tasks.spawn(async move {
            let _lease = pool.acquire().await.unwrap();
            order.lock().unwrap().push(nth);
            sleep(MS).await;
        });
        settle().await;
    }

    drop(held);
    tasks.join_all().await;

    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
}

/// CMAP `maxConnecting`: a handshake takes 800 ms and two may run, so the third waits for one of
/// them.
#[tokio::test(start_paused = true)]
async fn cmap_max_connecting_holds_the_third_dial_back() {
    let rig = Rig::new(|pool| pool.max_size(10).max_opening(2));
    rig.backend.always(Call::Open, Gate::Slow(800 * MS));
    let waiters = [rig.wait(), rig.wait(), rig.wait()];
    let start = now();

    sleep(700 * MS).await;
    let dials = rig.backend.calls(Call::Open);
    let mut leases = Vec::new();
    for waiter in waiters {
        leases.push((waiter.await.unwrap(), (now() - start)));
    }

    assert_eq!(dials, 2);
    assert!(leases[1].1 < 900 * MS, "{:?}", leases[1].1);
    assert!((1_600 * MS..1_700 * MS).contains(&leases[2].1));
}

/// CMAP `maxConnecting`: a returned resource serves the waiter behind it.
#[tokio::test(start_paused = true)]
async fn cmap_a_return_serves_a_waiter_behind_max_connecting() {
    let rig = Rig::new(|pool| pool.max_size(10).max_opening(2));
    let held = rig.acquire().await;
    rig.backend.always(Call::Open, Gate::Slow(800 * MS));
    let start = now();
    let (first, second, third) = (rig.wait(), rig.wait(), rig.wait());

    sleep(100 * MS).await;
    drop(held);
    drop(first.await.unwrap());
    drop(second.await.unwrap());
    drop(third.await.unwrap());

    assert!((now() - start) < 110 * MS, "{:?}", (now() - start));
    assert!(rig.backend.calls(Call::Open) <= 3);
}

/// The fairness experiment in which bb8 gave one greedy task 2881 leases and four others 4: here on
/// threads, and without a pause between two leases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_greedy_task_beside_four_others_gets_its_share() {
    let rig = Rig::with_max_size(1);
    let (mut tasks, shares) = compete(&rig.pool, MS / 5);

    let enough = async {
        while shares[0].load(Ordering::Relaxed) < 60 {
            sleep(MS).await;
        }
    };
    timeout(60 * SECOND, enough).await.unwrap();
    tasks.shutdown().await;

    let others: Vec<_> = (1..5).map(|n| shares[n].load(Ordering::Relaxed)).collect();
    assert!(others.iter().all(|share| *share >= 50), "{others:?}");
}

/// harbor-next: tasks that each hold one lease meet at a barrier, and then each asks for a second.
/// Every pool deadlocks; here an event reports it within a second, and so does the error.
#[tokio::test(start_paused = true)]
async fn harbor_next_nested_acquires_at_a_barrier_are_reported_within_a_second() {
    for size in [1, 2, 8, 32] {
        let rig = Rig::with_max_size(size);
        let mut tasks = meet(&rig.pool, size);
        let start = now();

        sleep(1_010 * MS).await;
        let reported = rig.recorder.of("nested_acquire");

        assert_eq!(reported.len(), 1, "of {size}: {reported:?}");
        assert!(reported[0].contains(&format!("holders={size} ")));
        assert!((now() - start) < 1_100 * MS);
        let first = tasks.join_next().await.unwrap().unwrap().unwrap_err();
        assert!(first.to_string().contains("nested acquire"), "{first}");
        tasks.join_all().await;
        rig.assert_full_service().await;
    }
}

/// The same with `nested = Deny`: every second acquire fails at once.
#[tokio::test(start_paused = true)]
async fn harbor_next_nested_acquires_can_be_denied() {
    let rig = Rig::new(|pool| pool.max_size(8).nested(Nested::Deny));
    let start = now();

    let outcomes = meet(&rig.pool, 8).join_all().await;

    assert_eq!((now() - start), Duration::ZERO);
    assert!(outcomes.iter().all(|second| second.is_err()));
    assert_eq!(rig.pool.status().idle, 8);
}

type Second = Result<(), AcquireError<cenote_testkit::Fault>>;

/// Starts `count` tasks that acquire, meet at a barrier, and acquire again.
fn meet(pool: &GatedPool, count: usize) -> JoinSet<Second> {
    let barrier = Arc::new(Barrier::new(count));
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let (pool, barrier) = (pool.clone(), Arc::clone(&barrier));
        tasks.spawn(async move {
            let _first = pool.acquire().await?;
            barrier.wait().await;
            pool.acquire().await.map(drop)
        });
    }
    tasks
}

/// pgx, lifetime waves: 5 resources, a lifetime of 10 to 20 s, and queries all the time. Resources
/// that were opened together are not replaced together, and no caller waits for a replacement.
#[tokio::test(start_paused = true)]
async fn pgx_lifetimes_end_spread_and_not_in_waves() {
    let births = Arc::new(Openings::default());
    let backend = Arc::new(Backend::default());
    backend.always(Call::Open, Gate::Slow(50 * MS));
    let pool = cenote::Pool::builder(GatedManager(backend))
        .max_size(6)
        .min_size(5)
        .max_lifetime(20 * SECOND)
        .lifetime_jitter(0.5)
        .observer(births.clone())
        .build()
        .unwrap();
    pool.warm().await.unwrap();
    let start = now();

    let mut longest = Duration::ZERO;
    while (now() - start) < 60 * SECOND {
        let mut queries = JoinSet::new();
        for _ in 0..5 {
            let pool = pool.clone();
            queries.spawn(async move {
                let asked = now();
                let _lease = pool.acquire().await.unwrap();
                let waited = now() - asked;
                sleep(5 * MS).await;
                waited
            });
        }
        longest = longest.max(queries.join_all().await.into_iter().max().unwrap());
        sleep(5 * MS).await;
    }

    let births: Vec<_> = births.times().drain(5..).collect();
    assert!((10..=35).contains(&births.len()), "{}", births.len());
    // A wave would be all five within 200 ms. By chance it happens once in a million lifetimes.
    assert!(births.windows(5).all(|five| five[4] - five[0] > 200 * MS));
    assert!(longest <= 60 * MS, "a caller waited for {longest:?}");
    assert!(pool.status().total >= 5);
}
