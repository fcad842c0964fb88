//! How fast a share moves between processes, and how much of the capacity is used.
//!
//! `cargo test -p cenote-fleet-servers figures -- --nocapture --test-threads 1` prints the figures,
//! and `CENOTE_BURSTS=40` makes more bursts. Their bounds here are wide, because other tests run at
//! the same time.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::CAPACITY;
use super::crew::{Hand, LIMIT};
use super::database::Wall;
use super::stage::{Engine, Stage};
use super::watch::Watch;
use crate::SECOND;

/// How many connections one process wants at once. The other five have their floors.
const BURST: u32 = 28;

#[expect(clippy::disallowed_methods, reason = "the ban guards the pool")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres() {
    measure(Engine::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb() {
    measure(Engine::Mariadb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_redis_counted_by_postgres() {
    measure(Engine::Redis).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_nats_counted_by_mariadb() {
    measure(Engine::Nats).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_redis_alone() {
    measure(Engine::RedisAlone).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_nats_alone() {
    measure(Engine::NatsAlone).await;
}

async fn measure(engine: Engine) {
    let stage = Stage::build(engine, Wall::Capacity).await;
    let ttl = match stage.is_counted() {
        true => 10 * SECOND, // the default
        false => 4 * SECOND, // the test waits for its end
    };
    let mut hands = Vec::new();
    for _ in 0..6 {
        hands.push(Hand::start(&stage, ttl).await);
    }
    for hand in &mut hands {
        hand.joined().await;
    }

    let moved = bursts(&mut hands).await;
    let (middle, most) = (moved[moved.len() / 2], moved[moved.len() - 1]);
    let freed = kill(&mut hands).await;
    let used = contend(&stage, &mut hands[1..]).await;

    println!(
        "{engine:?}, TTL {ttl:?}: a burst of {BURST} is served after {middle:?} (median of {}, at \
         most {most:?}), the share of a killed process is in use after {freed:?}, {:.1} % of the \
         capacity are used",
        moved.len(),
        100.0 * used
    );
    assert!(most < 10 * SECOND, "{moved:?}");
    // It does not wait for the TTL where sessions are counted.
    let slow = if stage.is_counted() {
        8 * SECOND
    } else {
        ttl + 10 * SECOND
    };
    assert!(freed < slow, "{freed:?}");
    assert!(used > 0.8, "{used}");
}

/// Two processes take turns: one has a share that it does not use, and the other wants it. The
/// first process holds it in the end. Returns how long each waited, in order of length.
async fn bursts(hands: &mut [Hand]) -> Vec<Duration> {
    let named = std::env::var("CENOTE_BURSTS").ok();
    let count: usize = named.and_then(|text| text.parse().ok()).unwrap_or(3);
    let mut waits = Vec::new();
    for turn in 0..=count {
        let hand = &mut hands[(count - turn) % 2];
        hand.order(&format!("hold {BURST}"));
        let wait = hand.hear("held").await;
        waits.push(Duration::from_millis(wait.parse().unwrap()));
        if turn < count {
            hand.order("drop 0");
            sleep(2 * SECOND).await; // its demand is forgotten by then
        }
    }
    waits.remove(0); // no process had the share before
    waits.sort();
    waits
}

/// The first is killed while it holds its share, and the second waits for it.
async fn kill(hands: &mut [Hand]) -> Duration {
    hands[1].order(&format!("hold {BURST}"));
    sleep(2 * SECOND).await;
    hands[0].kill();
    let killed = now();
    hands[1].hear("held").await;
    hands[1].order("drop 0");
    killed.elapsed()
}

/// All want all. Returns the part of the capacity that is used when all shares are even.
async fn contend(stage: &Stage, hands: &mut [Hand]) -> f64 {
    hands.iter_mut().for_each(|hand| hand.order("work 60"));
    let even = timeout(LIMIT, async {
        while !is_even(hands).await {
            sleep(SECOND / 10).await;
        }
    });
    assert!(even.await.is_ok(), "the shares are never even");
    let watch = Watch::at(&stage.database).await;
    sleep(2 * SECOND).await;
    let seen = watch.seen();
    assert!(seen.most <= CAPACITY, "{seen:?}");
    seen.sum as f64 / seen.counts as f64 / f64::from(CAPACITY)
}

async fn is_even(hands: &mut [Hand]) -> bool {
    let (mut least, mut most) = (u32::MAX, 0);
    for hand in hands {
        let share = hand.tell().await.share;
        (least, most) = (least.min(share), most.max(share));
    }
    most - least <= 1
}
