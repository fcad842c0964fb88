//! Run: cargo run -p cenote-examples --example timeouts_and_holders
//!
//! How do I find out who holds the resources when an acquire times out?

use std::error::Error;
use std::io;
use std::time::Duration;

use cenote::{AcquireError, ClosureError, Closures, Lease, Pool};
use tokio::task::yield_now;
use tokio::time::sleep;

type Desks = Pool<Closures<String>>;

/// Takes a lease, labels it, and keeps it for a long time.
async fn report(desks: Desks) -> Result<(), AcquireError<ClosureError>> {
    let desk = desks.acquire().await?;
    Lease::label(&desk, "nightly report");
    sleep(Duration::from_secs(60)).await;
    Ok(())
}

/// Takes a lease without a label, and keeps it for a long time.
async fn import(desks: Desks) -> Result<(), AcquireError<ClosureError>> {
    let _desk = desks.acquire().await?;
    sleep(Duration::from_secs(60)).await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let desks: Desks = Pool::from_fn(async || Ok::<_, io::Error>("a desk".to_owned()))
        .name("desks")
        .max_size(3)
        .build()?;
    tokio::spawn(report(desks.clone()));
    tokio::spawn(import(desks.clone()));
    tokio::spawn(import(desks.clone()));
    while desks.status().in_use < 3 {
        yield_now().await;
    }

    // `acquire` would wait for the `acquire_timeout` of the pool, which is five seconds by default.
    let limit = Duration::from_millis(100);
    let Err(error) = desks.acquire_within(limit).await else {
        return Err("there are only three desks".into());
    };

    println!("the error, in one line:\n  {error}\n");
    let AcquireError::TimedOut(seen) = &error else {
        return Err(error.into());
    };
    println!("the holders, by call site:");
    for group in seen.holders() {
        println!("  {group}");
    }
    println!("\nthe leases of the pool, which are available at any time:");
    for holder in desks.leases() {
        println!("  {holder}");
    }

    assert!(seen.waited() >= limit);
    assert!(error.is_retryable());
    let text = error.to_string();
    assert!(text.contains("3 of 3 in use") && text.contains("timeouts_and_holders.rs"));
    let [reports, imports] = seen.holders() else {
        return Err("there are two call sites".into());
    };
    assert_eq!((reports.count, imports.count), (1, 2));
    assert_eq!(reports.label.as_deref(), Some("nightly report"));
    assert!(reports.site.line() < imports.site.line());
    assert_eq!(desks.leases().len(), 3);
    Ok(())
}
