//! How fast a share moves between processes, and how much of the capacity is used.
//!
//! `cargo test -p cenote-fleet --all-features figures -- --nocapture` prints the figures. Their
//! bounds here are wide, because other tests run at the same time.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::CAPACITY;
use super::crew::Hand;
use super::watch::Watch;
use crate::SECOND;

/// The default.
const TEN: Duration = Duration::from_secs(10);

#[expect(clippy::disallowed_methods, reason = "the ban guards the pool")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_of_six_processes() {
    let server = cenote_servers::postgres::start().unwrap();
    let url = server.url();
    let mut hands = Vec::new();
    for _ in 0..6 {
        hands.push(Hand::start(url, CAPACITY, TEN).await);
    }
    for hand in &hands {
        hand.joined().await;
    }
    let [first, second, others @ ..] = &mut hands[..] else {
        unreachable!()
    };

    // The second has all that the floors leave, and does not use it.
    second.order("hold 28");
    second.hear("held").await;
    second.order("drop 0");
    sleep(3 * SECOND).await; // the peak of its demand is forgotten after two renewals
    first.order("hold 28");
    let moved: u64 = first.hear("held").await.parse().unwrap();
    println!("a burst of 28 is served after {moved} ms");

    // The first is killed while it has all, and the second waits for it.
    second.order("hold 28");
    sleep(2 * SECOND).await;
    first.kill();
    let killed = now();
    second.hear("held").await;
    let recovered = killed.elapsed().as_millis();
    println!("the share of a killed process is free after {recovered} ms");
    second.order("drop 0");

    // All five want all.
    second.order("work 60");
    others.iter_mut().for_each(|hand| hand.order("work 60"));
    sleep(3 * SECOND).await;
    let watch = Watch::at(url).await;
    sleep(2 * SECOND).await;
    let seen = watch.seen();
    let used = seen.sum as f64 / seen.counts as f64 / f64::from(CAPACITY);
    println!("{:.1} % of the capacity is used", 100.0 * used);

    assert!(moved < 10_000, "{moved} ms");
    assert!(recovered < 8000, "{recovered} ms: before its TTL");
    assert!(used > 0.8 && seen.most <= CAPACITY, "{seen:?}");
}
