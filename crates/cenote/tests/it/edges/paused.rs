//! A clock that is paused in the middle of a test counts from then on, in debug and in release
//! builds alike.

use std::sync::Arc;
use std::time::Duration;

use cenote::{AcquireError, Lease, Pool};
use cenote_testkit::{Backend, Fault, GatedManager, GatedPool};
use tokio::task::JoinHandle;
use tokio::time::{advance, pause, timeout};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

type Served = Result<(), AcquireError<Fault>>;

/// A pool without an observer, which would make every reading of the clock exact.
fn unobserved() -> (GatedPool, Arc<Backend>) {
    let backend = Arc::new(Backend::default());
    let builder = Pool::builder(GatedManager(Arc::clone(&backend))).max_size(1);
    (builder.build().expect("the settings are valid"), backend)
}

/// Leases go through a tray, and only the feature `test-util` makes the pool read tokio's clock
/// there.
#[cfg(feature = "test-util")]
#[tokio::test]
async fn a_resource_that_is_idle_for_long_is_checked() {
    use cenote_testkit::Call;

    for use_again in [false, true] {
        let (pool, backend) = unobserved();
        for _ in 0..10 {
            drop(pool.acquire().await.unwrap());
        }
        pause();
        if use_again {
            drop(pool.acquire().await.unwrap());
        }

        advance(6 * SECOND).await;
        drop(pool.acquire().await.unwrap());

        assert_eq!(backend.calls(Call::Check), 1);
        tokio::time::resume();
    }
}

/// A waiter with a limit of three seconds, and the lease that it waits for.
async fn waiter_and_lease() -> (JoinHandle<Served>, Lease<GatedManager>) {
    let (pool, _) = unobserved();
    let held = pool.acquire().await.expect("one is free");
    let waiter = tokio::spawn(async move { pool.acquire_within(3 * SECOND).await.map(drop) });
    tokio::time::sleep(5 * MS).await;
    (waiter, held)
}

#[tokio::test]
async fn a_waiter_times_out_when_the_clock_is_advanced() {
    let (waiter, held) = waiter_and_lease().await;

    pause();
    advance(4 * SECOND).await;
    let late = timeout(SECOND, waiter).await.expect("its time is over");

    assert!(matches!(late, Ok(Err(AcquireError::TimedOut(_)))));
    drop(held);
}

#[tokio::test]
async fn a_waiter_times_out_when_the_clock_advances_by_itself() {
    let (waiter, held) = waiter_and_lease().await;

    pause();
    let late = timeout(60 * SECOND, waiter).await.expect("3 s come first");

    assert!(matches!(late, Ok(Err(AcquireError::TimedOut(_)))));
    drop(held);
}
