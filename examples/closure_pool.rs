//! How do I make a pool without writing a manager? Run: cargo run -p cenote-examples --example closure_pool

use std::error::Error;
use std::io;
use std::time::Duration;

use cenote::{Pool, Reason};

const SIZE: usize = 4096;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::from_fn(async || Ok::<_, io::Error>(vec![0u8; SIZE]))
        .healthcheck(async |buffer: &mut Vec<u8>| buffer.len() == SIZE)
        .destructor(async |buffer| println!("closed: a buffer of {} bytes", buffer.len()))
        // Check on every acquire, and not only what was idle for some seconds.
        .check_after_idle(Duration::ZERO)
        .max_size(1)
        .build()?;

    let length = pool.with(async |buffer| buffer.len()).await?;
    println!("lent: a buffer of {length} bytes");
    assert_eq!(length, SIZE);

    pool.with(async |buffer| buffer.truncate(10)).await?;
    println!("returned: a buffer that somebody cut");

    let length = pool.with(async |buffer| buffer.len()).await?;
    println!("lent: a buffer of {length} bytes");
    assert_eq!(length, SIZE, "the healthcheck kept the short one back");
    assert_eq!(pool.status().closed.by(Reason::FailedCheck), 1);

    let left_out = pool.close_within(Duration::from_secs(1)).await;
    assert!(left_out.is_empty());
    Ok(())
}
