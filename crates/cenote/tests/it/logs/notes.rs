//! Lines that tell how a pool lives, and those for a closer look.

use std::time::Duration;

use cenote::Lease;
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};
use tracing::Level;

use super::capture::{Capture, Line};

const SECOND: Duration = Duration::from_secs(1);

#[track_caller]
fn is_info(line: &Line, pool: &str) {
    assert_eq!((line.level, line.field("pool")), (Level::INFO, pool));
}

#[tokio::test(start_paused = true)]
async fn a_warm_up_is_told_with_its_count_and_its_time() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders").min_size(3));
    rig.backend.always(Call::Open, Gate::Slow(SECOND));

    rig.pool.warm().await.unwrap();

    let line = log.one("warmed up: 3 opened in 1.0s");
    is_info(&line, "orders");
    assert_eq!((line.field("opened"), line.field("took")), ("3", "1s"));
    assert_eq!(line.field("complete"), "true");
}

#[tokio::test(start_paused = true)]
async fn a_warm_up_that_failed_is_told_too() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders"));
    rig.backend.always(Call::Open, Gate::Fail);

    assert!(rig.pool.warm().await.is_err());

    assert_eq!(
        log.one("not warmed up: 0 opened").field("complete"),
        "false"
    );
}

#[tokio::test(start_paused = true)]
async fn opens_that_succeed_again_are_told_once() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders"));
    rig.backend.once(Call::Open, Gate::Fail);
    assert!(rig.pool.acquire().await.is_err());

    let leases = (rig.acquire().await, rig.acquire().await);

    let line = log.one("opens succeed again, after 1 failures");
    is_info(&line, "orders");
    assert_eq!((line.field("failures"), line.field("id")), ("1", "1"));
    drop(leases);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_is_active_again_is_told() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders"));
    rig.pool.breaker().trip();
    rig.pool.breaker().probe();
    rig.pool.breaker().reset();

    let line = log.one("breaker active: ");
    is_info(&line, "orders");
    assert_eq!(line.field("from"), "recovering");
    assert_eq!(log.one("breaker recovering").level, Level::DEBUG);
    assert!(
        !log.one("breaker tripped: ").has("cause"),
        "tripped by hand"
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_size_is_told() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders"));

    rig.pool.resize(20).unwrap();

    let line = log.one("resized from 10 to 20");
    is_info(&line, "orders");
    assert_eq!((line.field("from"), line.field("to")), ("10", "20"));
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_closes_in_order_says_so() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders"));
    drop(rig.acquire().await);

    assert!(rig.pool.close_within(SECOND).await.is_empty());

    is_info(&log.one("pool closed: no lease is out"), "orders");
    let line = log.one("closed in order: nothing left");
    is_info(&line, "orders");
    assert_eq!(line.field("close_failed"), "0");
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_closes_with_leftovers_names_them() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders"));
    let _forgotten = rig.acquire().await;

    assert!(!rig.pool.close_within(SECOND).await.is_empty());

    let closed = log.one("pool closed: 1 leases are out");
    assert_eq!(closed.field("in_use"), "1");
    let line = log.one("closed with leftovers: 1 leased: resource 1 at ");
    is_info(&line, "orders");
    assert_eq!((line.field("leases"), line.field("took")), ("1", "1s"));
    assert_eq!(line.field("unfinished"), "0");
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_dropped_says_that_it_is_closed() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders"));

    drop(rig);

    is_info(&log.one("pool closed: "), "orders");
}

#[tokio::test(start_paused = true)]
async fn a_leak_that_comes_back_is_told() {
    let log = Capture::start();
    let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    let pool = pool.name("orders").leak_after(SECOND).build().unwrap();
    let lease = pool.acquire().await.unwrap();
    advance(40 * SECOND).await;

    drop(lease);

    let line = log.one("returned after all: resource 1 at ");
    is_info(&line, "orders");
    assert_eq!((line.field("id"), line.field("held")), ("1", "40s"));
    assert!(line.field("site").contains("notes.rs:"));
}

#[tokio::test(start_paused = true)]
async fn opens_and_closes_are_told_for_a_closer_look() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders"));
    Lease::discard(rig.acquire().await);
    settle().await;

    let opened = log.one("opened");
    assert_eq!((opened.level, opened.field("id")), (Level::DEBUG, "1"));
    assert_eq!(
        (opened.field("took"), opened.field("pool")),
        ("0ns", "orders")
    );
    let closed = log.one("closed: discarded");
    assert_eq!((closed.level, closed.field("id")), (Level::DEBUG, "1"));
    assert_eq!(closed.field("reason"), "discarded");
}

#[tokio::test(start_paused = true)]
async fn other_failed_callbacks_are_told_for_a_closer_look() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders"));
    rig.backend.once(Call::Clean, Gate::Fail);
    let mut lease = rig.acquire().await;
    lease.dirty = true;
    drop(lease);
    settle().await;

    let line = log.one("callback failed: Clean: ");
    assert_eq!((line.level, line.field("pool")), (Level::DEBUG, "orders"));
    assert_eq!((line.field("id"), line.field("callback")), ("1", "Clean"));
    assert!(line.text.ends_with(line.field("cause")), "{line:?}");
}

#[tokio::test(start_paused = true)]
async fn trips_that_are_served_at_once_leave_no_line_and_no_span() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders"));
    drop(rig.acquire().await);
    let before = (log.of("").len(), log.spans().len());

    for _ in 0..100 {
        drop(rig.acquire().await);
    }

    assert_eq!((log.of("").len(), log.spans().len()), before);
}
