//! Values of the user that the pool drops may call the pool: no resource, no error and no waker is
//! dropped under its lock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::{error, fmt};

use cenote::config::OnOpenError;
use cenote::{Lease, Manager, Pool, WeakPool};
use cenote_testkit::clock::{eventually, settle};

use crate::support::runtimes::single;

/// A way back to the pool, for the values that it drops.
type Back = Arc<OnceLock<WeakPool<AskingManager>>>;

/// Calls its pool when it is dropped.
struct Asking(Back);

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(pool) = self.0.get().and_then(WeakPool::upgrade) {
            let status = pool.status();
            assert!(status.total <= status.max_size);
        }
    }
}

struct Oops(#[expect(dead_code, reason = "it is there to be dropped")] Asking);

impl fmt::Debug for Oops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("oops")
    }
}

impl fmt::Display for Oops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("oops")
    }
}

impl error::Error for Oops {}

/// Opens fail, except every `period`th.
struct AskingManager {
    back: Back,
    period: usize,
    opens: AtomicUsize,
}

impl Manager for AskingManager {
    type Resource = Asking;
    type Error = Oops;

    async fn open(&self) -> Result<Asking, Oops> {
        let asking = Asking(Arc::clone(&self.back));
        let nth = self.opens.fetch_add(1, Ordering::Relaxed) + 1;
        if nth % self.period == 0 {
            Ok(asking)
        } else {
            Err(Oops(asking))
        }
    }
}

fn asking_pool(period: usize, on_open_error: OnOpenError) -> Pool<AskingManager> {
    let back = Back::default();
    let manager = AskingManager {
        back: Arc::clone(&back),
        period,
        opens: AtomicUsize::new(0),
    };
    let pool = Pool::builder(manager)
        .max_size(2)
        .on_open_error(on_open_error)
        .build()
        .expect("the settings are valid");
    back.set(pool.downgrade()).expect("it is set once");
    pool
}

/// A waker that calls the pool when it is dropped.
struct AskingWaker(WeakPool<AskingManager>);

impl Wake for AskingWaker {
    fn wake(self: Arc<Self>) {}
}

impl Drop for AskingWaker {
    fn drop(&mut self) {
        let pool = self.0.upgrade().expect("the pool outlives its waiters");
        assert_eq!(pool.status().waiting, 0, "it has left the queue");
    }
}

/// Runs `story` in a thread of its own, because it may never end.
fn assert_ends(story: impl FnOnce() + Send + 'static) {
    let story = thread::spawn(story);
    eventually("the pool does not lock itself out", || story.is_finished());
    story.join().expect("the story ends well");
}

#[test]
fn an_error_may_ask_the_pool_while_it_is_dropped() {
    for on_open_error in [OnOpenError::Fail, OnOpenError::Retry] {
        assert_ends(move || {
            let runtime = single();
            let pool = asking_pool(3, on_open_error);
            for _ in 0..6 {
                if let Ok(lease) = runtime.block_on(pool.acquire()) {
                    Lease::discard(lease);
                }
            }
        });
    }
}

#[test]
fn a_resource_may_ask_the_pool_while_it_is_dropped() {
    assert_ends(|| {
        let runtime = single();
        let pool = asking_pool(1, OnOpenError::Fail);
        runtime.block_on(async {
            for nth in 0..8 {
                let lease = pool.acquire().await.unwrap();
                match nth % 4 {
                    0 => Lease::discard(lease),
                    1 => drop(Lease::detach(lease)),
                    2 => drop(lease),
                    _ => Lease::release(lease).await,
                }
                if nth == 4 {
                    pool.invalidate();
                }
            }
        });
        let kept = runtime.block_on(pool.acquire()).unwrap();
        drop(runtime);
        drop(pool);
        drop(kept);
    });
}

#[test]
fn a_waker_may_ask_the_pool_while_it_is_dropped() {
    assert_ends(|| {
        let runtime = single();
        let pool = asking_pool(1, OnOpenError::Fail);
        let _entered = runtime.enter();
        pool.suspend();
        let mut waiting = Box::pin(pool.acquire());
        let asking = Waker::from(Arc::new(AskingWaker(pool.downgrade())));
        let polled = waiting.as_mut().poll(&mut Context::from_waker(&asking));
        assert!(polled.is_pending());
        drop(asking);

        drop(waiting);
    });
}

#[tokio::test(start_paused = true)]
async fn errors_that_no_caller_will_read_are_dropped() {
    let pool = asking_pool(usize::MAX, OnOpenError::Fail);
    let back = pool.manager().back.clone();
    let before = Arc::strong_count(&back);

    for _ in 0..100 {
        assert!(pool.acquire().await.is_err());
    }
    settle().await;

    let kept = Arc::strong_count(&back) - before;
    assert_eq!(kept, 1, "only the last one can still be asked for");
}
