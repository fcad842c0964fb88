//! Storms: at most ten lines per second and pool, and the number of those that are missing.

use std::time::Duration;

use cenote::Pool;
use cenote_testkit::clock::advance;
use cenote_testkit::{Call, Gate, Rig};

use super::capture::{Capture, Line};

const SECOND: Duration = Duration::from_secs(1);

fn suppressed(lines: &[Line]) -> usize {
    let told = lines.iter().filter(|line| line.has("suppressed"));
    told.filter_map(|line| line.field("suppressed").parse::<usize>().ok())
        .sum()
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_timeouts_in_a_second_write_ten_lines_and_none_is_lost() {
    let log = Capture::start();
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).max_size(1);
    let pool = pool.slow_acquire(None).leak_after(None).build().unwrap();
    let held = pool.acquire().await.unwrap();
    for tenth in 0..10 {
        let mut late = Vec::new();
        for _ in 0..1000 {
            let pool = pool.clone();
            late.push(tokio::spawn(async move {
                pool.acquire_within(SECOND / 10).await.is_err()
            }));
        }
        for one in late {
            assert!(one.await.unwrap(), "tenth {tenth}");
        }
    }
    let storm = log.of("acquire timed out: ");
    assert!((1..=10).contains(&storm.len()), "{} lines", storm.len());

    advance(2 * SECOND).await;
    assert!(pool.acquire_within(SECOND).await.is_err());

    let told = log.of("acquire timed out: ").len();
    assert_eq!(told + suppressed(&log.of("")), 10_001, "none is lost");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn slow_acquires_that_time_out_share_the_ten_lines() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.max_size(1).acquire_timeout(SECOND * 3 / 2));
    let _held = rig.acquire().await;

    let late: Vec<_> = (0..1000).map(|_| rig.wait()).collect();
    for one in late {
        assert!(one.await.is_err());
    }

    let (slow, late) = (log.of("slow acquire: "), log.of("acquire timed out: "));
    assert!(!slow.is_empty(), "they wait longer than a second");
    let lines = slow.len() + late.len();
    assert!(lines <= 10, "{} and {} lines", slow.len(), late.len());
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_failed_opens_is_limited_too() {
    let log = Capture::start();
    let rig = Rig::with_max_size(1);
    rig.backend.always(Call::Open, Gate::Fail);
    for _ in 0..1000 {
        assert!(rig.pool.acquire().await.is_err());
    }

    let lines = log.of("opening failed: ");

    let seconds = rig.recorder.of("open_failed").len() / 1000 + 1;
    assert!(lines.len() <= 10 * seconds, "{} lines", lines.len());
}

#[tokio::test(start_paused = true)]
async fn a_count_that_no_further_line_tells_is_told_by_upkeep() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders").max_size(1).slow_acquire(None));
    let _held = rig.acquire().await;
    let late: Vec<_> = (0..100).map(|_| rig.wait()).collect();
    for one in late {
        assert!(one.await.is_err());
    }
    let told = log.of("acquire timed out: ").len();

    advance(60 * SECOND).await;

    let line = log.one(&format!(
        "{} slow acquires and timeouts were not logged",
        100 - told
    ));
    assert_eq!(line.field("pool"), "orders");
    assert_eq!(line.field("suppressed"), (100 - told).to_string());
}

#[tokio::test(start_paused = true)]
async fn a_count_is_not_lost_when_the_pool_closes() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.max_size(1).slow_acquire(None));
    let _held = rig.acquire().await;
    let late: Vec<_> = (0..100).map(|_| rig.wait()).collect();
    for one in late {
        assert!(one.await.is_err());
    }
    advance(SECOND).await;

    drop(rig);

    let lines = log.of("acquire timed out: ").len();
    assert!(suppressed(&log.of("")) + lines >= 100);
}
