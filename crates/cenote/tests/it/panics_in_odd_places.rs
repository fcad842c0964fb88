//! A panic in unexpected places: in the drop of a resource, and in the text of an error. Also
//! panics on many threads at once.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cenote::{AcquireError, Lease, Manager, Pool};
use cenote_testkit::clock::{advance, settle};
use cenote_testkit::{Call, Gate, Recorder, Rig, Thing};
use tokio::time::{sleep, timeout};

/// Panics when it is dropped, until it is disarmed.
struct Bomb(Arc<AtomicBool>);

impl Drop for Bomb {
    fn drop(&mut self) {
        let armed = self.0.load(Ordering::Relaxed);
        assert!(!armed || std::thread::panicking(), "the resource exploded");
    }
}

struct Bombs {
    armed: Arc<AtomicBool>,
    hang: AtomicBool,
}

impl Manager for Bombs {
    type Resource = Bomb;
    type Error = std::io::Error;

    async fn open(&self) -> Result<Bomb, std::io::Error> {
        Ok(Bomb(Arc::clone(&self.armed)))
    }

    async fn close(&self, bomb: Bomb) -> Result<(), std::io::Error> {
        if self.hang.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        drop(bomb);
        Ok(())
    }
}

fn bombs(hang: bool) -> (Pool<Bombs>, Arc<AtomicBool>) {
    let armed = Arc::new(AtomicBool::new(true));
    let manager = Bombs {
        armed: Arc::clone(&armed),
        hang: AtomicBool::new(hang),
    };
    let pool = Pool::builder(manager)
        .max_size(2)
        .idle_timeout(Duration::from_secs(60))
        .build()
        .expect("the settings are valid");
    (pool, armed)
}

async fn assert_both_can_be_had(pool: &Pool<Bombs>) {
    let long = Duration::from_secs(20);
    let one = pool.acquire_within(long).await.expect("a slot was lost");
    let other = pool.acquire_within(long).await.expect("a slot was lost");
    assert_eq!((pool.status().in_use, pool.status().total), (2, 2));
    drop((one, other));
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_panics_when_it_is_dropped_frees_its_slot() {
    let (pool, armed) = bombs(false);
    for _ in 0..5 {
        Lease::discard(pool.acquire().await.unwrap());
    }
    drop(pool.acquire().await.unwrap());

    advance(Duration::from_secs(61)).await;

    assert_eq!((pool.status().total, pool.status().closing), (0, 0));
    assert_both_can_be_had(&pool).await;
    armed.store(false, Ordering::Relaxed);
}

#[tokio::test(start_paused = true)]
async fn a_resource_whose_close_hangs_and_that_then_panics_when_it_is_dropped_frees_its_slot() {
    let (pool, armed) = bombs(true);
    Lease::discard(pool.acquire().await.unwrap());
    Lease::discard(pool.acquire().await.unwrap());

    advance(Duration::from_secs(6)).await;

    assert_eq!((pool.status().total, pool.status().closing), (0, 0));
    assert_both_can_be_had(&pool).await;
    armed.store(false, Ordering::Relaxed);
}

#[tokio::test(start_paused = true)]
async fn an_awaited_release_of_a_resource_that_panics_on_drop_does_not_panic() {
    for hang in [false, true] {
        let (pool, armed) = bombs(hang);
        let lease = pool.acquire().await.unwrap();
        pool.close();

        Lease::release(lease).await;

        assert_eq!((pool.status().total, pool.status().closing), (0, 0));
        armed.store(false, Ordering::Relaxed);
    }
}

/// An error that cannot be shown.
#[derive(Debug)]
struct Unprintable;

impl fmt::Display for Unprintable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("the error cannot be shown")
    }
}

impl std::error::Error for Unprintable {}

#[derive(Default)]
struct UnprintableErrors {
    fails: AtomicBool,
    closed: AtomicUsize,
}

impl UnprintableErrors {
    fn answer(&self) -> Result<(), Unprintable> {
        match self.fails.load(Ordering::Relaxed) {
            true => Err(Unprintable),
            false => Ok(()),
        }
    }
}

impl Manager for UnprintableErrors {
    type Resource = ();
    type Error = Unprintable;

    async fn open(&self) -> Result<(), Unprintable> {
        self.answer()
    }

    async fn check(&self, (): &mut ()) -> Result<(), Unprintable> {
        self.answer()
    }

    fn needs_cleaning(&self, (): &mut ()) -> bool {
        true
    }

    async fn clean(&self, (): &mut ()) -> Result<(), Unprintable> {
        self.answer()
    }

    async fn close(&self, (): ()) -> Result<(), Unprintable> {
        self.closed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn unprintable_errors() -> Pool<UnprintableErrors> {
    Pool::builder(UnprintableErrors::default())
        .max_size(1)
        .observer(Arc::new(Recorder::default()))
        .build()
        .expect("the settings are valid")
}

fn fail(pool: &Pool<UnprintableErrors>, fails: bool) {
    pool.manager().fails.store(fails, Ordering::Relaxed);
}

#[tokio::test(start_paused = true)]
async fn an_open_error_that_panics_when_shown_reaches_the_caller_all_the_same() {
    let pool = unprintable_errors();
    fail(&pool, true);

    let refused = pool.acquire().await;

    let Err(AcquireError::Open { error, .. }) = refused else {
        panic!("it was to fail");
    };
    assert!(matches!(error, cenote::OpenError::Failed(_)));
    fail(&pool, false);
    assert!(pool.acquire().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_check_or_clean_whose_error_panics_when_shown_closes_the_resource() {
    let pool = unprintable_errors();
    let lease = pool.acquire().await.unwrap();
    fail(&pool, true);

    drop(lease);
    settle().await;

    assert_eq!((pool.status().total, pool.status().closing), (0, 0));
    assert_eq!(pool.manager().closed.load(Ordering::Relaxed), 1, "clean");
    fail(&pool, false);
    drop(pool.acquire().await.unwrap());
    advance(Duration::from_secs(6)).await;
    fail(&pool, true);
    pool.acquire().await.unwrap_err();
    assert_eq!(pool.manager().closed.load(Ordering::Relaxed), 2, "check");
    fail(&pool, false);
    assert!(pool.acquire().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_awaited_release_whose_error_panics_when_shown_does_not_panic() {
    let pool = unprintable_errors();
    let lease = pool.acquire().await.unwrap();
    fail(&pool, true);

    let returned = tokio::spawn(Lease::release(lease)).await;

    assert!(returned.is_ok(), "the panic reached the caller");
    fail(&pool, false);
    assert!(pool.acquire().await.is_ok());
}

#[test]
fn a_panic_while_a_lease_is_held_outside_any_runtime_returns_it() {
    let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(7))
        .max_size(1)
        .build()
        .unwrap();
    let lease = pool.acquire_blocking().unwrap();

    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let _lease = lease;
        panic!("the holder panicked");
    }));

    assert!(panicked.is_err());
    assert_eq!((pool.status().idle, pool.status().in_use), (1, 0));
    assert_eq!(*pool.acquire_blocking().unwrap(), 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panics_in_every_callback_on_many_threads_lose_nothing() {
    let rig = Arc::new(Rig::new(|pool| {
        pool.max_size(4)
            .check_after_idle(Duration::ZERO)
            .before_acquire(async |thing: &mut Thing| thing.pass(Call::BeforeAcquire).await)
            .before_release(async |thing: &mut Thing| thing.pass(Call::BeforeRelease).await)
    }));
    let tasks: Vec<_> = (0..16)
        .map(|nth| {
            let rig = Arc::clone(&rig);
            tokio::spawn(async move {
                for round in 0..20 {
                    rig.backend
                        .once(Call::ALL[(nth + round) % Call::ALL.len()], Gate::Panic);
                    if let Ok(mut lease) = rig.pool.acquire().await {
                        lease.dirty = round % 2 == 0;
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();

    for task in tasks {
        let ended = timeout(Duration::from_secs(60), task).await;
        ended.expect("a waiter is stuck").unwrap();
    }

    rig.backend.heal();
    sleep(Duration::from_millis(50)).await;
    rig.assert_full_service().await;
}
