//! Six processes on a real PostgreSQL server: killed, stopped, cut off, with wrong clocks and lost
//! rows. An observer counts their sessions every five milliseconds.
//!
//! `CENOTE_CHAOS_SECONDS=600` plays for longer, and `CENOTE_SEED=S` draws the same faults again.

mod crew;
mod figures;
mod member;
mod play;
mod watch;

use std::time::Duration;

use play::{Play, Wall};

const GROUP: &str = "orders";

/// The control connections of six members, a place for one that joins, and 33 for the pools.
const CAPACITY: u32 = 40;

/// Short, so that a play sees many burials.
const TTL: Duration = Duration::from_secs(4);

fn seconds(default: u64) -> Duration {
    let named = std::env::var("CENOTE_CHAOS_SECONDS");
    let named = named.ok().and_then(|text| text.parse().ok());
    Duration::from_secs(named.unwrap_or(default))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_never_has_more_sessions_than_the_capacity_whatever_happens() {
    let mut play = Play::begin(Wall::Capacity).await;

    play.faults(seconds(15)).await;
    play.heal().await;

    let seen = play.end().await;
    println!("{seen:?}");
    assert!(seen.most <= CAPACITY, "{seen:?}");
    assert!(seen.counts > 100 && seen.most > CAPACITY / 2, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_limit_at_the_server_strays_are_seen_and_cut() {
    let mut play = Play::begin(Wall::None).await;

    play.faults(seconds(5)).await;
    play.heal().await;

    let seen = play.end().await;
    println!("{seen:?}");
    assert!(seen.last <= CAPACITY, "{seen:?}");
    assert!(seen.longest_over < TTL + crew::LIMIT / 2, "{seen:?}");
}
