//! Run: cargo run -p cenote-examples --example redis_lanes
//!
//! How do many tasks share a few connections to Redis?

use std::error::Error;

use cenote_redis::Pool;
use cenote_redis::redis::{AsyncCommands, cmd};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = cenote_servers::redis::start()?;
    let mut redis = Pool::from_url(server.url()).mux(1).max_size(2).build()?;

    // Commands that leave nothing behind share one connection: the lane.
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let mut redis = redis.clone();
            tokio::spawn(async move { redis.incr::<_, _, u32>("visits", 1).await })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let visits: u32 = redis.get("visits").await?;
    println!("{visits} visits over {} connection", redis.status().opened);
    assert_eq!((visits, redis.status().opened), (100, 1));

    // A command that blocks has a connection of its own, so the others go on.
    let mut worker = redis.clone();
    let job = tokio::spawn(async move { worker.blpop::<_, (String, String)>("jobs", 0.0).await });
    redis.rpush::<_, _, ()>("jobs", "mail").await?;
    let (_, job) = job.await??;
    println!("the job: {job}");
    assert_eq!(job, "mail");

    // A command that others must follow needs a lease. The error says so.
    if let Err(error) = cmd("SELECT").arg(1).exec_async(&mut redis).await {
        println!("{error}");
    }
    let mut lease = redis.acquire().await?;
    cmd("SELECT").arg(1).exec_async(&mut lease).await?;
    assert_eq!(lease.get::<_, Option<u32>>("visits").await?, None);
    drop(lease);

    // The next user of that connection is back in the database of the URL.
    let mut lease = redis.acquire().await?;
    assert_eq!(lease.get::<_, u32>("visits").await?, 100);
    Ok(())
}
