//! How do I shut down without cutting off who is at work? Run: cargo run -p cenote-examples --example drain_on_shutdown

use std::error::Error;
use std::io;
use std::time::Duration;

use cenote::{AcquireError, Closures, ConfigError, Pool};
use tokio::task::yield_now;
use tokio::time::sleep;

fn rooms() -> Result<Pool<Closures<&'static str>>, ConfigError> {
    Pool::from_fn(async || Ok::<_, io::Error>("a room"))
        .name("rooms")
        .max_size(1)
        .build()
}

/// A lease that comes home in time: closing waits for it, and for nothing longer.
async fn all_goes_well() -> Result<(), Box<dyn Error>> {
    let pool = rooms()?;
    let lease = pool.acquire().await?;
    let worker = tokio::spawn(async move {
        sleep(Duration::from_millis(100)).await;
        drop(lease);
    });
    let waiter = tokio::spawn({
        let pool = pool.clone();
        async move { pool.acquire().await.map(drop) }
    });
    // Let the waiter get in line.
    yield_now().await;

    let left_out = pool.close_within(Duration::from_secs(1)).await;

    println!("closed, left out: {}", left_out.leases.len());
    assert!(left_out.is_empty());
    assert!(worker.is_finished());
    let told = waiter.await?;
    println!("who waited was told at once: {told:?}");
    assert!(matches!(told, Err(AcquireError::Closed { .. })));
    Ok(())
}

/// A lease that does not: closing gives up in time, and names its holder.
async fn somebody_is_late() -> Result<(), Box<dyn Error>> {
    let pool = rooms()?;
    let late = pool.acquire().await?;

    let left_out = pool.close_within(Duration::from_millis(100)).await;

    println!("closed, left out: {}", left_out.leases.len());
    for holder in &left_out.leases {
        println!("  {holder}");
    }
    assert_eq!(left_out.leases.len(), 1);
    assert!(
        left_out.leases[0]
            .site
            .file()
            .ends_with("drain_on_shutdown.rs")
    );

    // It may still be used; when it comes home it is closed.
    assert_eq!(*late, "a room");
    drop(late);
    let left_out = pool.close_within(Duration::from_secs(1)).await;
    println!("and a moment later: {}", left_out.leases.len());
    assert!(left_out.is_empty());
    assert_eq!(pool.status().closed.total(), 1);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    all_goes_well().await?;
    somebody_is_late().await
}
