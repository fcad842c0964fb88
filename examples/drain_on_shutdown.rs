//! Run: cargo run -p cenote-examples --example drain_on_shutdown
//!
//! How do I shut down without interrupting work?

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

/// Closing waits for a lease that is given back in time.
async fn lease_in_time() -> Result<(), Box<dyn Error>> {
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
    // Lets the waiter join the queue.
    yield_now().await;

    let leftover = pool.close_within(Duration::from_secs(1)).await;

    println!("closed, leases left: {}", leftover.leases.len());
    assert!(leftover.is_empty());
    assert!(worker.is_finished());
    let waited = waiter.await?;
    println!("the waiter got an error at once: {waited:?}");
    assert!(matches!(waited, Err(AcquireError::Closed { .. })));
    Ok(())
}

/// Closing stops waiting after its limit, and names the holder of a lease that is still out.
async fn lease_too_late() -> Result<(), Box<dyn Error>> {
    let pool = rooms()?;
    let late = pool.acquire().await?;

    let leftover = pool.close_within(Duration::from_millis(100)).await;

    println!("closed, leases left: {}", leftover.leases.len());
    for holder in &leftover.leases {
        println!("  {holder}");
    }
    assert_eq!(leftover.leases.len(), 1);
    assert!(
        leftover.leases[0]
            .site
            .file()
            .ends_with("drain_on_shutdown.rs")
    );

    // The lease can still be used. When it ends, its resource is closed.
    assert_eq!(*late, "a room");
    drop(late);
    let leftover = pool.close_within(Duration::from_secs(1)).await;
    println!("closed again, leases left: {}", leftover.leases.len());
    assert!(leftover.is_empty());
    assert_eq!(pool.status().closes.total(), 1);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    lease_in_time().await?;
    lease_too_late().await
}
