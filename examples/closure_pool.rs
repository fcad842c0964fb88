//! Run: cargo run -p cenote-examples --example closure_pool
//!
//! How do I make a pool without writing a manager?

use std::error::Error;
use std::io;
use std::time::Duration;

use cenote::{CloseReason, Pool};

const SIZE: usize = 4096;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::from_fn(async || Ok::<_, io::Error>(vec![0u8; SIZE]))
        .check_with(async |buffer: &mut Vec<u8>| buffer.len() == SIZE)
        .close_with(async |buffer| println!("closed: a buffer of {} bytes", buffer.len()))
        // Checks on every acquire, not only after some seconds of idleness.
        .check_after_idle(Duration::ZERO)
        .max_size(1)
        .build()?;

    let length = pool.with(async |buffer| buffer.len()).await?;
    println!("lent: a buffer of {length} bytes");
    assert_eq!(length, SIZE);

    pool.with(async |buffer| buffer.truncate(10)).await?;
    println!("returned: a buffer that was truncated");

    let length = pool.with(async |buffer| buffer.len()).await?;
    println!("lent: a buffer of {length} bytes");
    assert_eq!(length, SIZE, "the check closed the short one");
    assert_eq!(pool.status().closes.by(CloseReason::FailedCheck), 1);

    let leftover = pool.close_within(Duration::from_secs(1)).await;
    assert!(leftover.is_empty());
    Ok(())
}
