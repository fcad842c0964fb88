//! Lines that an operator should act on.

use std::time::Duration;

use cenote::Lease;
use cenote::breaker::ConsecutiveFailures;
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Rig};
use tracing::Level;

use super::capture::Capture;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_leak_is_told_once() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders").leak_after(10 * SECOND));
    let lease = rig.acquire().await;
    Lease::label(&lease, "report");

    advance(10 * SECOND).await;
    advance(100 * SECOND).await;

    let line = log.one("leak: resource 1 at ");
    assert_eq!(line.level, Level::WARN);
    assert_eq!((line.field("pool"), line.field("id")), ("orders", "1"));
    assert_eq!((line.field("held"), line.field("label")), ("10s", "report"));
    assert!(line.field("site").contains("warnings.rs:"));
    assert!(line.text.contains("for 10.0s by "), "{line:?}");
    assert!(
        line.text
            .ends_with(&format!("{} (report)", line.field("task")))
    );
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_holders_that_wait_is_told_once() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders").max_size(1));
    let held = rig.acquire().await;

    assert!(rig.pool.acquire().await.is_err());
    assert!(rig.pool.acquire().await.is_err());

    let line = log.one("nested acquire: ");
    assert_eq!(line.level, Level::WARN);
    assert_eq!((line.field("pool"), line.field("holders")), ("orders", "1"));
    assert!(line.field("site").contains("warnings.rs:"));
    assert!(line.text.contains("held: resource 1 at "), "{line:?}");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_told_with_its_whole_error_and_advice() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders").max_size(1));
    let held = rig.acquire().await;
    let late = rig.wait();

    let error = late.await.unwrap_err().to_string();

    let line = log.one("acquire timed out: ");
    assert_eq!(line.level, Level::WARN);
    assert_eq!(line.text, format!("acquire timed out: {error}"));
    assert_eq!((line.field("pool"), line.field("waited")), ("orders", "5s"));
    assert_eq!((line.field("phase"), line.field("in_use")), ("Queued", "1"));
    let advice = line.field("advice");
    assert!(advice.starts_with("1 of 1 held by "), "{advice}");
    assert!(advice.ends_with("for up to 5.0s: a leak or slow work"));
    assert!(!line.has("suppressed"));
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_failed_open_is_told_with_its_cause() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders"));
    rig.backend.always(Call::Open, Gate::Fail);

    assert!(rig.pool.acquire().await.is_err());

    let line = log.one("opening failed: ");
    assert_eq!(line.level, Level::WARN);
    assert_eq!((line.field("pool"), line.field("took")), ("orders", "0ns"));
    assert_eq!(line.field("cause"), line.text);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_trips_is_told_with_its_cause() {
    let log = Capture::start();
    let breaker = ConsecutiveFailures::new(1);
    let rig = Rig::new(|pool| pool.name("orders").breaker(breaker));
    rig.backend.always(Call::Open, Gate::Fail);

    assert!(rig.pool.acquire().await.is_err());

    let line = log.one("breaker tripped: ");
    assert_eq!(line.level, Level::WARN);
    let (from, to) = (line.field("from"), line.field("to"));
    assert_eq!(
        (line.field("pool"), from, to),
        ("orders", "active", "inactive")
    );
    assert!(line.field("cause").starts_with("opening failed: "));
    assert!(line.text.ends_with(line.field("cause")), "{line:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_close_is_told() {
    let log = Capture::start();
    let rig = Rig::new(|pool| pool.name("orders"));
    rig.backend.always(Call::Close, Gate::Hang);
    Lease::discard(rig.acquire().await);

    advance(6 * SECOND).await;
    settle().await;

    let line = log.one("closing failed: took longer than 5.0s");
    assert_eq!(line.level, Level::WARN);
    assert_eq!((line.field("pool"), line.field("id")), ("orders", "1"));
    assert_eq!(line.field("cause"), "took longer than 5.0s");
}
