//! Run: cargo run -p cenote-examples --example keyed_tenants
//!
//! How do many tenants share one limit of connections, so that no busy tenant starves the others?

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::Manager;
use cenote_keyed::{AcquireError, Pools};
use tokio::time::sleep;

/// Connections to the database of one tenant. A real manager would connect to it.
struct Connections {
    tenant: String,
}

impl Manager for Connections {
    type Resource = String;
    type Error = Infallible;

    async fn open(&self) -> Result<String, Infallible> {
        sleep(Duration::from_millis(2)).await;
        Ok(format!("connection to {}", self.tenant))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let pools = Pools::builder(|tenant: &String| Connections {
        tenant: tenant.clone(),
    })
    .name("tenants")
    .total(8) // what the server allows
    .max_size(8) // a tenant that is alone may have them all
    .acquire_timeout(Duration::from_secs(10))
    .build()?;

    // One tenant has forty callers, and each of twenty others has one.
    let served = Arc::new(AtomicUsize::new(0));
    let hot: Vec<_> = (0..40)
        .map(|_| {
            let (pools, served) = (pools.clone(), Arc::clone(&served));
            tokio::spawn(async move {
                loop {
                    let Ok(connection) = pools.acquire(&"hot".to_owned()).await else {
                        return;
                    };
                    sleep(Duration::from_millis(1)).await;
                    served.fetch_add(1, Ordering::Relaxed);
                    drop(connection);
                }
            })
        })
        .collect();
    for nth in 0..20 {
        let tenant = format!("tenant-{nth}");
        let connection = pools.acquire(&tenant).await?;
        println!("{tenant} has a {}", **connection);
    }
    println!(
        "meanwhile the hot tenant was served {} times",
        served.load(Ordering::Relaxed)
    );
    hot.iter().for_each(tokio::task::JoinHandle::abort);

    // If the limit is used up for too long, the error says which tenants hold the connections.
    let mut held = Vec::new();
    for nth in 0..8 {
        held.push(pools.acquire(&format!("tenant-{}", nth / 3)).await?);
    }
    let late = pools.acquire_within(&"late".to_owned(), Duration::from_millis(50));
    match late.await {
        Err(AcquireError::UsedUp(seen)) => println!("{seen}"),
        other => println!("{other:?}"),
    }

    drop(held);
    let left = pools.close_within(Duration::from_secs(5)).await;
    assert!(left.is_empty(), "all connections are closed");
    Ok(())
}
