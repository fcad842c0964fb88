//! Spikes, as HikariCP and psycopg test them: callers that come at once are served by the open
//! resources, and the pool opens no more than helps.

use std::sync::Arc;
use std::time::Duration;

use cenote::AcquireError;
use cenote::config::OnOpenError;
use cenote_testkit::clock::now;
use cenote_testkit::{Call, Gate, GatedPool, Rig};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::support::rigs::{hold, warmed};

const MS: Duration = Duration::from_millis(1);

/// The best that HikariCP published: five, and one or two connects that began too late to matter.
const LEAN: usize = 7;

/// The result of a caller, and when it was done.
type Ended = (Result<(), AcquireError<cenote_testkit::Fault>>, Duration);

/// `callers` acquire at once and hold for `hold`. The results are sorted by when they were done.
async fn spike(pool: &GatedPool, callers: usize, hold: Duration, patience: Duration) -> Vec<Ended> {
    let start = now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let pool = pool.clone();
        tasks.spawn(async move {
            let acquired = pool.acquire_within(patience).await;
            if acquired.is_ok() {
                sleep(hold).await;
            }
            let ended = acquired.map(drop);
            (ended, (now() - start))
        });
    }
    let mut ended = tasks.join_all().await;
    ended.sort_by_key(|(_, at)| *at);
    ended
}

fn served(ended: &[Ended]) -> usize {
    ended.iter().filter(|(outcome, _)| outcome.is_ok()).count()
}

/// HikariCP, spike demand: connect 150 ms, query 2 ms, 5 ready, at most 50, and 50 callers at once.
/// DBCP2 and Vibur ended with 45 connections, Tomcat with 40.
#[tokio::test(start_paused = true)]
async fn hikari_spike_demand_is_served_by_the_open_resources() {
    let rig = warmed(5, 50, 150 * MS).await;

    let ended = spike(&rig.pool, 50, 2 * MS, 5_000 * MS).await;
    sleep(500 * MS).await;

    let (last, peak) = (ended[49].1, rig.backend.peak());
    assert_eq!(served(&ended), 50);
    assert!(last <= 25 * MS, "the last one was done after {last:?}");
    assert!(peak <= LEAN, "{peak} were opened, {LEAN} are plenty");
    assert_eq!(rig.pool.status().total, peak);
}

/// The same where nothing is open yet: the first wave of opens is needed, a second one is not.
#[tokio::test(start_paused = true)]
async fn hikari_spike_demand_on_an_empty_pool_opens_no_second_wave() {
    let rig = warmed(0, 50, 150 * MS).await;

    let ended = spike(&rig.pool, 50, 2 * MS, 5_000 * MS).await;
    sleep(500 * MS).await;

    let (last, peak) = (ended[49].1, rig.backend.peak());
    assert_eq!(served(&ended), 50);
    assert!(last <= 180 * MS, "the last one was done after {last:?}");
    assert!(peak <= LEAN, "{peak} were opened, {LEAN} are plenty");
}

/// The small form of psycopg: 5 ready, at most 10. It asks for fewer than 7, with one open at a
/// time. Here a second open runs, so that one slow open does not stop growth.
#[tokio::test(start_paused = true)]
async fn psycopg_spike_demand_ends_small() {
    let rig = warmed(5, 10, 150 * MS).await;

    let ended = spike(&rig.pool, 50, 2 * MS, 5_000 * MS).await;
    sleep(500 * MS).await;

    assert_eq!(served(&ended), 50);
    assert!(rig.pool.status().total <= LEAN, "{:#?}", rig.pool.status());
}

/// The spike, while each open fails after as long as an open takes: no caller needed a new
/// resource.
#[tokio::test(start_paused = true)]
async fn hikari_spike_demand_is_served_while_dials_fail_late() {
    let rig = warmed(5, 50, 150 * MS).await;
    rig.backend.always(Call::Open, Gate::Hang);

    let ended = spike(&rig.pool, 50, 2 * MS, 5_000 * MS).await;

    assert_eq!(served(&ended), 50);
    assert!(ended[49].1 <= 25 * MS);
    assert!(rig.pool.status().opening <= LEAN - 5);
}

/// The spike, while opens fail at once and `on_open_error` is `Retry`: the open resources serve all
/// callers.
#[tokio::test(start_paused = true)]
async fn hikari_spike_demand_is_served_while_dials_fail_at_once() {
    let rig = Rig::new(|pool| {
        pool.min_size(5)
            .max_size(50)
            .on_open_error(OnOpenError::Retry)
    });
    rig.pool.warm().await.unwrap();
    rig.backend.always(Call::Open, Gate::Fail);

    let ended = spike(&rig.pool, 50, 2 * MS, 5_000 * MS).await;

    assert_eq!(served(&ended), 50);
    assert!(ended[49].1 <= 25 * MS);
    assert!(
        rig.backend.calls(Call::Open) <= 5 + 4,
        "it was a dial storm"
    );
}

/// The same with `on_open_error = Fail`: few callers get the error, and returns serve the rest. One
/// open for each waiter would fail 45 of 50 at once.
#[tokio::test(start_paused = true)]
async fn hikari_spike_demand_fails_few_while_dials_fail_at_once() {
    let rig = Rig::new(|pool| pool.min_size(5).max_size(50));
    rig.pool.warm().await.unwrap();
    rig.backend.always(Call::Open, Gate::Fail);

    let ended = spike(&rig.pool, 50, 2 * MS, 5_000 * MS).await;

    assert!(served(&ended) >= 46, "{} of 50", served(&ended));
    assert!(ended[49].1 <= 25 * MS);
    rig.assert_full_service().await;
}

/// The spike, with callers that give up after 10 ms: as many are served as 5 resources can serve by
/// then, and nothing is lost.
#[tokio::test(start_paused = true)]
async fn hikari_spike_demand_with_deadlines_serves_as_many_as_it_can() {
    let rig = warmed(5, 50, 150 * MS).await;

    let ended = spike(&rig.pool, 50, 2 * MS, 10 * MS).await;
    sleep(500 * MS).await;

    assert!(served(&ended) >= 25, "{} were served", served(&ended));
    assert!(
        ended[49].1 <= 13 * MS,
        "a caller waited beyond its deadline"
    );
    assert!(rig.backend.peak() <= LEAN);
    let status = rig.pool.status();
    assert_eq!(status.timed_out as usize, 50 - served(&ended));
    assert_eq!((status.in_use, status.waiting), (0, 0));
}

/// psycopg `grow`: connect 0.1 s, hold 0.25 s, 2 ready, at most 4, and 8 callers. The pool must be
/// at least as quick as psycopg's schedule.
#[tokio::test(start_paused = true)]
async fn psycopg_grow_is_as_quick_as_its_schedule() {
    let rig = warmed(2, 4, 100 * MS).await;

    let ended = spike(&rig.pool, 8, 250 * MS, 5_000 * MS).await;

    assert_eq!(served(&ended), 8);
    let schedule = [250, 250, 350, 450, 500, 500, 600, 700];
    for ((_, at), limit) in ended.iter().zip(schedule) {
        // The timers of the clock tick in milliseconds.
        assert!(*at <= (limit + 2) * MS, "{at:?} is later than {limit} ms");
    }
}

/// 500 callers at once on an empty pool of 10 that opens in 50 ms: it grows to 10 as quickly as
/// `max_opening` lets it, give or take a hold.
#[tokio::test(start_paused = true)]
async fn a_flood_on_an_empty_pool_opens_it_in_full_and_soon() {
    let rig = warmed(0, 10, 50 * MS).await;
    let pool = rig.pool.clone();
    let flood = tokio::spawn(async move { spike(&pool, 500, 5 * MS, 5_000 * MS).await });

    sleep(170 * MS).await;
    let grown = rig.pool.status();

    assert_eq!(grown.total - grown.opening, 10, "{grown:#?}");
    let ended = flood.await.unwrap();
    assert_eq!(served(&ended), 500);
    assert!(ended[499].1 <= 420 * MS, "{:?}", ended[499].1);
}

/// Long leases are not returned soon: the pool stops waiting for returns, and opens as fast as it
/// may.
#[tokio::test(start_paused = true)]
async fn a_spike_behind_long_holds_is_not_put_off() {
    let rig = Arc::new(warmed(5, 50, 100 * MS).await);
    let long: Vec<_> = hold(&rig, 5).await;

    let ended = spike(&rig.pool, 40, 1_000 * MS, 5_000 * MS).await;

    assert_eq!(served(&ended), 40);
    let last = ended[39].1;
    // Each two rounds of four opens bring eight, so it takes ten rounds if no lease is returned.
    assert!(last <= 2_200 * MS, "the last one was done after {last:?}");
    drop(long);
}
