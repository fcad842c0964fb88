//! Run: cargo run -p cenote-examples --example resize_and_invalidate
//!
//! How do I change a pool while it is in use?

use std::error::Error;
use std::io;

use cenote::{CloseReason, Closures, Lease, Pool, Status};
use tokio::task::yield_now;

fn show(what: &str, pool: &Pool<Closures<()>>) -> Status {
    let status = pool.status();
    let Status {
        max_size,
        in_use,
        idle,
        ..
    } = status;
    println!("{what:<44}max_size {max_size}, in use {in_use}, idle {idle}");
    status
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = Pool::from_fn(async || Ok::<_, io::Error>(()))
        .max_size(1)
        .build()?;
    let first = pool.acquire().await?;
    show("one resource, in use:", &pool);

    // Growing takes effect at once, also for waiters.
    let waiter = tokio::spawn({
        let pool = pool.clone();
        async move { pool.acquire().await }
    });
    yield_now().await;
    assert_eq!(pool.status().waiting, 1);
    pool.resize(2)?;
    let second = waiter.await??;
    show("resized to 2, and the waiter has one:", &pool);

    // Shrinking ends no lease. The surplus resource is closed when its lease ends.
    pool.resize(1)?;
    assert_eq!(show("resized to 1, both still in use:", &pool).in_use, 2);
    Lease::release(first).await;
    let status = show("one lease ended:", &pool);
    assert_eq!((status.in_use, status.idle), (1, 0));
    assert_eq!(status.closes.by(CloseReason::Shrunk), 1);

    // After a failover, or with a new password: no resource that is open now is lent again.
    pool.invalidate();
    let old = Lease::id(&second);
    Lease::release(second).await;
    let status = show("invalidated, and the other lease ended:", &pool);
    assert_eq!((status.in_use, status.idle), (0, 0));
    assert_eq!(status.closes.by(CloseReason::Invalidated), 1);

    let fresh = pool.acquire().await?;
    println!(
        "the next lease has resource {}, not {old}",
        Lease::id(&fresh)
    );
    assert_ne!(Lease::id(&fresh), old);

    // A size that cannot work is an error with the reason.
    let refused = pool.resize(0).err().ok_or("zero is no size")?;
    println!("resize(0): {refused}");
    assert_eq!(refused.field(), "max_size");
    Ok(())
}
