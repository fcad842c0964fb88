//! Acquires that wait: their span, and the line while they still wait.

use std::time::Duration;

use cenote::Pool;
use cenote_testkit::Rig;
use cenote_testkit::clock::{advance, settle};
use tracing::{Instrument, Level};

use super::capture::Capture;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_slow_acquire_is_told_while_it_waits_with_the_lines_that_hold() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders").max_size(1));
    let held = rig.acquire().await;
    let waiting = tokio::spawn({
        let pool = rig.pool.clone();
        async move { pool.acquire().await.is_ok() }
    });
    settle().await;
    assert!(log.of("slow acquire: ").is_empty());

    advance(SECOND).await;

    let line = log.one("slow acquire: pool `orders`: no resource for 1.0s by now: ");
    assert_eq!(line.level, Level::WARN);
    assert_eq!((line.field("pool"), line.field("waited")), ("orders", "1s"));
    assert_eq!((line.field("in_use"), line.field("waiting")), ("1", "1"));
    assert!(line.field("site").contains("slow.rs:"));
    assert!(line.text.contains("held: 1 at "), "{line:?}");
    assert!(line.field("advice").starts_with("1 of 1 held by "));
    advance(3 * SECOND).await;
    assert_eq!(log.of("slow acquire: ").len(), 1, "once per wait");
    drop(held);
    assert!(waiting.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_time_after_which_an_acquire_is_slow_can_be_set_or_off() {
    let log = Capture::start();
    for (slow, lines) in [(Some(SECOND / 5), 1), (Some(3 * SECOND), 0), (None, 0)] {
        let rig = Rig::new(|pool| pool.max_size(1).slow_acquire(slow));
        let held = rig.acquire().await;
        let before = log.of("slow acquire: ").len();

        let waiting = tokio::spawn({
            let pool = rig.pool.clone();
            async move { pool.acquire().await.is_ok() }
        });
        advance(SECOND).await;

        let after = log.of("slow acquire: ").len();
        assert_eq!(after - before, lines, "{slow:?}");
        drop(held);
        assert!(waiting.await.unwrap());
    }
}

#[tokio::test]
async fn the_alarm_lets_a_slow_waiter_say_so_in_real_time() {
    let log = Capture::start();
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).max_size(1);
    let slow = Duration::from_millis(20);
    let pool = pool.slow_acquire(slow).build().unwrap();
    let _held = pool.acquire().await.unwrap();

    let late = pool.acquire_within(10 * slow).await;

    assert!(late.is_err());
    let line = log.one("slow acquire: ");
    assert_eq!(line.spans, ["acquire"], "in the wait, not after it");
}

#[test]
fn a_blocked_thread_says_that_it_is_slow() {
    let log = Capture::start();
    let pool = Pool::from_fn(async || Ok::<_, &str>(())).max_size(1);
    let slow = Duration::from_millis(20);
    let pool = pool.slow_acquire(slow).build().unwrap();
    let _held = pool.acquire_blocking().unwrap();

    assert!(pool.acquire_blocking_within(10 * slow).is_err());

    assert_eq!(log.of("slow acquire: ").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_span_of_an_acquire_is_a_child_of_the_span_of_the_request() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders").max_size(1));
    let held = rig.acquire().await;
    let request = tracing::info_span!(target: "test", "request");
    let late = rig.pool.acquire().instrument(request);

    assert!(late.await.is_err());

    let spans = log.spans();
    let acquire = spans.iter().rfind(|span| span.name == "acquire").unwrap();
    let parent = acquire.parent.as_ref().unwrap().into_u64() as usize;
    assert_eq!(spans[parent - 1].name, "request");
    assert_eq!(acquire.fields["pool"], "orders");
    assert!(acquire.fields["site"].contains("slow.rs:"));
    assert!(acquire.is_closed, "it ends with the wait");
    let path = ["request", "acquire"];
    assert_eq!(log.one("slow acquire: ").spans, path);
    assert_eq!(log.one("acquire timed out: ").spans, path);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_served_or_dropped_closes_its_span() {
    let log = Capture::start();
    let rig = Rig::with_max_size(1);
    let held = rig.acquire().await;
    let (served, dropped) = (rig.wait(), rig.wait());

    drop(dropped);
    drop(held);
    drop(served.await.unwrap());

    let spans = log.spans();
    let acquires = spans.iter().filter(|span| span.name == "acquire");
    assert!(acquires.clone().count() >= 2, "{spans:?}");
    assert!(acquires.into_iter().all(|span| span.is_closed));
}
