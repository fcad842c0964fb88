//! Six processes on real servers: killed, stopped, cut off, with wrong clocks and lost cells. An
//! observer counts their sessions, and pauses five milliseconds between two counts.
//!
//! `CENOTE_CHAOS_SECONDS=600` plays for longer, and `CENOTE_SEED=S` draws the same faults again.

mod crew;
mod database;
mod figures;
mod member;
mod play;
mod pool;
mod stage;
mod watch;

use std::time::Duration;

use database::Wall;
use play::Play;
use stage::Engine;

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

mod the_server_never_has_more_sessions_than_the_capacity_whatever_happens {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn on_postgres() {
        never_more_than_the_capacity(Engine::Postgres).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn on_mariadb() {
        never_more_than_the_capacity(Engine::Mariadb).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn on_redis_counted_by_postgres() {
        never_more_than_the_capacity(Engine::Redis).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn on_nats_counted_by_mariadb() {
        never_more_than_the_capacity(Engine::Nats).await;
    }
}

async fn never_more_than_the_capacity(engine: Engine) {
    let mut play = Play::begin(engine, Wall::Capacity).await;

    play.faults(seconds(15)).await;
    play.heal().await;

    let seen = play.end();
    println!("{engine:?}: {seen:?}");
    assert!(seen.most <= CAPACITY, "{seen:?}");
    assert!(seen.counts > 100 && seen.most > CAPACITY / 2, "{seen:?}");
}

mod without_a_limit_at_the_server_strays_are_seen_and_cut {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn on_postgres() {
        strays_are_cut(Engine::Postgres).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn on_mariadb() {
        strays_are_cut(Engine::Mariadb).await;
    }
}

async fn strays_are_cut(engine: Engine) {
    let mut play = Play::begin(engine, Wall::None).await;

    play.faults(seconds(5)).await;
    play.heal().await;

    let seen = play.end();
    println!("{engine:?}: {seen:?}");
    assert!(seen.last <= CAPACITY, "{seen:?}");
    assert!(seen.longest_over < TTL + crew::LIMIT / 2, "{seen:?}");
}
