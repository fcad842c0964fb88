//! How many `GET`s per second do leases, lanes and the pools of others make?
//! Run: cargo run --release -p cenote-redis --example throughput
//!
//! It starts a private server, so it measures server and client on one machine.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use cenote_redis::Pool;
use redis::{AsyncCommands, AsyncConnectionConfig, Client};
use tokio::time::Instant;

const TASKS: usize = 256;
/// The default of bb8 and of cenote.
const CONNECTIONS: usize = 10;
const ROUND: Duration = Duration::from_secs(1);
const ROUNDS: usize = 6;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = cenote_servers::redis::start_with(&[("appendonly", "no")])?;
    let url = server.url();
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(5)));
    let bare = Client::open(url)?;
    let bare = bare.get_multiplexed_async_connection_with_config(&config);
    let mut bare = bare.await?;
    let () = bare.set("key", "value").await?;

    let leases = builder(url).mux(0).build()?;
    let bb8 = bb8::Pool::builder().max_size(u32::try_from(CONNECTIONS)?);
    let bb8 = bb8
        .build(bb8_redis::RedisConnectionManager::new(url)?)
        .await?;
    let deadpool = deadpool_redis::Config::from_url(url).builder()?;
    let deadpool = deadpool.max_size(CONNECTIONS).build()?;
    let lanes = |count| Ok::<_, Box<dyn Error>>(of(&builder(url).mux(count).build()?));

    let mut rows: Vec<Row> = vec![
        row("cenote-redis, a lease per command", move || {
            let pool = leases.clone();
            async move { value(&mut pool.acquire().await?).await }
        }),
        row("bb8-redis", move || {
            let pool = bb8.clone();
            async move { value(&mut *pool.get().await?).await }
        }),
        row("deadpool-redis", move || {
            let pool = deadpool.clone();
            async move { value(&mut pool.get().await?).await }
        }),
        ("cenote-redis, 1 lane", lanes(1)?, 0.0),
        ("cenote-redis, 2 lanes", lanes(2)?, 0.0),
        ("one bare connection of `redis`", of(&bare), 0.0),
    ];
    println!("GET, {TASKS} tasks, {CONNECTIONS} connections, best of {ROUNDS} rounds of {ROUND:?}");
    // In turns, so that a busy moment of the machine concerns all.
    for _ in 0..ROUNDS {
        for (_, call, best) in &mut rows {
            *best = best.max(round(call).await?);
        }
    }
    let leases = rows[0].2;
    for (name, _, best) in rows {
        let times = best / leases;
        println!("{name:34} {best:>9.0} per second, {times:.2} x leases");
    }
    Ok(())
}

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;
type Call = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync>;

/// A name, what is called, and the best round in calls per second.
type Row = (&'static str, Call, f64);

fn row<F: Future<Output = Outcome> + Send + 'static>(
    name: &'static str,
    call: impl Fn() -> F + Send + Sync + 'static,
) -> Row {
    (name, Arc::new(move || Box::pin(call())), 0.0)
}

fn builder(url: &str) -> cenote_redis::Builder {
    Pool::from_url(url).max_size(CONNECTIONS)
}

/// Returns calls on clones of a connection.
fn of<C: AsyncCommands + Clone + Sync + 'static>(connection: &C) -> Call {
    let connection = connection.clone();
    Arc::new(move || {
        let mut connection = connection.clone();
        Box::pin(async move { value(&mut connection).await })
    })
}

async fn value(connection: &mut (impl AsyncCommands + Sync)) -> Outcome {
    let value: String = connection.get("key").await?;
    assert_eq!(value, "value");
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the ban guards the pool; this measures"
)]
async fn round(call: &Call) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let end = start + ROUND;
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let call = Arc::clone(call);
            tokio::spawn(async move {
                let mut calls = 0_u32;
                while Instant::now() < end {
                    call().await?;
                    calls += 1;
                }
                Ok::<_, Box<dyn Error + Send + Sync>>(calls)
            })
        })
        .collect();
    let mut all = 0;
    for task in tasks {
        all += task.await?.map_err(|error| error.to_string())?;
    }
    Ok(f64::from(all) / start.elapsed().as_secs_f64())
}
