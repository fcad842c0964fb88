//! Run: cargo run -p cenote-examples --example bridge_managers
//!
//! How do I keep the managers that I have for bb8, deadpool and r2d2?

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use cenote::Pool;
use cenote_bridge::{Bb8, Deadpool, R2d2};

/// A manager as it was written for bb8.
#[derive(Debug)]
struct Letters;

impl bb8::ManageConnection for Letters {
    type Connection = Vec<String>;
    type Error = Infallible;

    async fn connect(&self) -> Result<Vec<String>, Infallible> {
        Ok(Vec::new())
    }

    async fn is_valid(&self, _: &mut Vec<String>) -> Result<(), Infallible> {
        Ok(())
    }

    fn has_broken(&self, letters: &mut Vec<String>) -> bool {
        letters.len() > 100
    }
}

/// One that was written for deadpool. It empties the letters between two uses.
#[derive(Debug)]
struct EmptyLetters;

impl deadpool::managed::Manager for EmptyLetters {
    type Type = Vec<String>;
    type Error = Infallible;

    async fn create(&self) -> Result<Vec<String>, Infallible> {
        Ok(Vec::new())
    }

    async fn recycle(
        &self,
        letters: &mut Vec<String>,
        _: &deadpool::managed::Metrics,
    ) -> deadpool::managed::RecycleResult<Infallible> {
        letters.clear();
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::builder(Bb8::new(Letters)).max_size(1).build()?;
    pool.acquire().await?.push("dear".to_owned());
    let lease = pool.acquire().await?;
    println!("bb8: {lease:?}");
    assert_eq!(*lease, ["dear"], "nothing cleans it, as in bb8");

    // The error of a pool that is empty names the line above.
    let late = pool.acquire_within(Duration::from_millis(50)).await;
    let report = late.err().map(|error| error.to_string());
    println!("{}", report.as_deref().unwrap_or("no error"));
    assert!(report.is_some_and(|report| report.contains(file!())));
    drop(lease);

    let pool = Pool::builder(Deadpool::new(EmptyLetters)).max_size(1);
    let pool = pool.build()?;
    pool.acquire().await?.push("dear".to_owned());
    let lease = pool.acquire().await?;
    println!("deadpool: {:?}", **lease);
    assert!(lease.is_empty(), "`recycle` has run in between");

    // Calls of an r2d2 manager block, so they run on threads for blocking calls.
    let manager = r2d2_sqlite::SqliteConnectionManager::memory();
    let pool = Pool::builder(R2d2::new(manager)).build()?;
    let lease = pool.acquire().await?;
    let sum: i64 = lease.query_row("select 1 + 1", [], |row| row.get(0))?;
    println!("r2d2: {sum}");
    assert_eq!(sum, 2);
    Ok(())
}
