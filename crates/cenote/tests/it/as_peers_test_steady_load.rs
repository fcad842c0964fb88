//! Steady load, as HikariCP tests it: the pool grows to the size that the work needs, no further,
//! and recovers after an overload.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::AcquireError;
use cenote_testkit::{GatedPool, Rig};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::support::rigs::warmed;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// `tasks` tasks acquire `rounds` times each, hold for `hold`, and rest for `rest`.
async fn work(pool: &GatedPool, tasks: usize, rounds: usize, hold: Duration, rest: Duration) {
    let mut workers = JoinSet::new();
    for _ in 0..tasks {
        let pool = pool.clone();
        workers.spawn(async move {
            for _ in 0..rounds {
                let lease = pool.acquire().await.expect("the load is served");
                pause(hold).await;
                drop(lease);
                pause(rest).await;
            }
        });
    }
    workers.join_all().await;
}

async fn pause(length: Duration) {
    if length.is_zero() {
        tokio::task::yield_now().await;
    } else {
        sleep(length).await;
    }
}

/// HikariCP, spike demand that goes on: connect 150 ms, query 2 ms, 5 ready, and 50 callers that
/// ask again at once, for 5 s.
#[tokio::test(start_paused = true)]
async fn hikari_spike_demand_that_goes_on_grows_the_pool_as_needed() {
    let rig = warmed(5, 100, 150 * MS).await;
    let load = work(&rig.pool, 50, usize::MAX, 2 * MS, Duration::ZERO);
    let grown = async {
        while rig.pool.status().total < 45 {
            sleep(10 * MS).await;
        }
        // Further growth would show by then.
        sleep(400 * MS).await;
    };

    tokio::select! {
        () = load => unreachable!("it goes on"),
        grown = timeout(5 * SECOND, grown) => grown.expect("it grows within 5 s"),
    }

    let peak = rig.backend.peak();
    assert!((45..=52).contains(&peak), "{peak} for 50 callers");
}

/// The same number of callers, which rest most of the time: few resources are busy, and growth
/// stops when no caller waits.
#[tokio::test(start_paused = true)]
async fn callers_that_rest_between_leases_do_not_grow_the_pool_to_their_number() {
    let rig = warmed(5, 100, 150 * MS).await;
    let load = async {
        let mut groups = JoinSet::new();
        for nth in 0..50 {
            let pool = rig.pool.clone();
            groups.spawn(async move {
                sleep(nth * MS).await;
                work(&pool, 1, usize::MAX, 2 * MS, 48 * MS).await;
            });
        }
        groups.join_all().await;
    };

    timeout(5 * SECOND, load).await.unwrap_err();

    let peak = rig.backend.peak();
    assert!(peak <= 7, "{peak} for a load of two");
}

/// HikariCP, pool size against threads: 50 tasks, connect 20 ms, hold 1 ms, at most 100. About 50
/// are needed, and nothing is opened once the work has stopped.
#[tokio::test(start_paused = true)]
async fn hikari_pool_size_is_about_the_number_of_tasks() {
    let rig = warmed(2, 100, 20 * MS).await;

    work(&rig.pool, 50, 500, MS, Duration::ZERO).await;
    let opened = rig.pool.status().opened;
    sleep(2 * SECOND).await;

    let peak = rig.backend.peak();
    assert!((45..=55).contains(&peak), "{peak} for 50 tasks");
    assert_eq!(rig.pool.status().opened, opened, "opened after the work");
}

/// HikariCP, its bursty form: connect 250 ms, nearly no hold. The work is over before a second open
/// could help.
#[tokio::test(start_paused = true)]
async fn hikari_bursty_work_opens_next_to_nothing() {
    let rig = warmed(2, 100, 250 * MS).await;

    work(&rig.pool, 50, 100, Duration::ZERO, Duration::ZERO).await;
    sleep(3 * SECOND).await;

    let status = rig.pool.status();
    assert_eq!(status.acquired, 5_000);
    assert!(status.opened <= 4, "{} were opened", status.opened);
    assert_eq!(status.opening, 0);
}

/// HikariCP `TestSaturatedPool830`: pool 10, query 1 s, acquire timeout 1 s. 50 callers saturate
/// it, then 12.5, 11 and 10 come per second. Timeouts stop once the rate is back to the capacity of
/// the pool.
#[tokio::test(start_paused = true)]
async fn hikari_saturated_pool_830_recovers_at_its_capacity() {
    let rig = Rig::new(|pool| pool.min_size(10).max_size(10).acquire_timeout(SECOND));
    rig.pool.warm().await.unwrap();
    let counts = Arc::new(Counts::default());
    let mut callers = JoinSet::new();

    for _ in 0..50 {
        callers.spawn(call(rig.pool.clone(), Arc::clone(&counts)));
    }
    sleep(10 * MS).await;
    let mut late = Vec::new();
    for (rate, seconds) in [(12.5, 10), (11.0, 10), (10.0, 10), (10.0, 20)] {
        let before = counts.late.load(Ordering::Relaxed);
        for _ in 0..(rate * f64::from(seconds)) as usize {
            callers.spawn(call(rig.pool.clone(), Arc::clone(&counts)));
            sleep(SECOND.div_f64(rate)).await;
        }
        late.push(counts.late.load(Ordering::Relaxed) - before);
    }
    callers.join_all().await;

    assert!(late[0] > 0, "it was never overloaded");
    assert!(late[2] <= 20, "overload went on: {late:?}");
    assert_eq!(late[3], 0, "timeouts at the pool's capacity: {late:?}");
    let status = rig.pool.status();
    assert_eq!((status.in_use, status.waiting, status.total), (0, 0, 10));
    let served = counts.served.load(Ordering::Relaxed);
    assert!(served >= 10 * 50, "only {served} in 51 s: the pool idled");
}

#[derive(Default)]
struct Counts {
    served: AtomicUsize,
    late: AtomicUsize,
}

async fn call(pool: GatedPool, counts: Arc<Counts>) {
    match pool.acquire().await {
        Ok(lease) => {
            sleep(SECOND).await;
            drop(lease);
            counts.served.fetch_add(1, Ordering::Relaxed);
        }
        Err(error) => {
            assert!(matches!(error, AcquireError::TimedOut(_)), "{error}");
            counts.late.fetch_add(1, Ordering::Relaxed);
        }
    }
}
