//! A clock that is paused in the middle of a test counts from then on, in debug and in release builds alike.

use std::sync::Arc;
use std::time::Duration;

use cenote::{AcquireError, Pool};
use cenote_testkit::{Backend, GatedManager, GatedPool};
use tokio::time::{advance, pause, timeout};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Without an observer, which would make every reading of the clock exact.
fn unobserved() -> (GatedPool, Arc<Backend>) {
    let backend = Arc::new(Backend::default());
    let builder = Pool::builder(GatedManager(Arc::clone(&backend))).max_size(1);
    (builder.build().expect("the settings are valid"), backend)
}

/// Leases go by tray, and nothing but the feature `test-util` looks at tokio's clock there.
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

#[tokio::test]
async fn a_waiter_times_out_when_the_clock_is_advanced() {
    let (pool, _) = unobserved();
    let held = pool.acquire().await.unwrap();
    let waiter = tokio::spawn(async move { pool.acquire_timeout(3 * SECOND).await.map(drop) });
    tokio::time::sleep(5 * MS).await;

    pause();
    advance(4 * SECOND).await;
    let late = timeout(SECOND, waiter)
        .await
        .expect("its time is over")
        .unwrap();

    assert!(matches!(late, Err(AcquireError::TimedOut(_))), "{late:?}");
    drop(held);
}

#[tokio::test]
async fn a_waiter_times_out_when_the_clock_advances_by_itself() {
    let (pool, _) = unobserved();
    let held = pool.acquire().await.unwrap();
    let waiter = tokio::spawn(async move { pool.acquire_timeout(3 * SECOND).await.map(drop) });
    tokio::time::sleep(5 * MS).await;

    pause();
    let late = timeout(60 * SECOND, waiter)
        .await
        .expect("3 s come first")
        .unwrap();

    assert!(matches!(late, Err(AcquireError::TimedOut(_))), "{late:?}");
    drop(held);
}
