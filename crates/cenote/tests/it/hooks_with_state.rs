//! Factories, checks, destructors and hooks can hold state of their own.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cenote::{CloseReason, Pool, hook};
use cenote_testkit::clock::settle;

/// Counts the calls of each closure of a pool.
#[derive(Default)]
struct Counts {
    opens: AtomicUsize,
    checks: AtomicUsize,
    acquires: AtomicUsize,
    releases: AtomicUsize,
    closes: AtomicUsize,
}

impl Counts {
    fn all(&self) -> [usize; 5] {
        let all = [
            &self.opens,
            &self.checks,
            &self.acquires,
            &self.releases,
            &self.closes,
        ];
        all.map(|count| count.load(Ordering::Relaxed))
    }
}

fn count(counter: &AtomicUsize) -> usize {
    counter.fetch_add(1, Ordering::Relaxed) + 1
}

type Answer<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

#[tokio::test(start_paused = true)]
async fn every_closure_of_a_pool_can_hold_state() {
    let counts = Arc::new(Counts::default());
    let (opens, closes) = (Arc::clone(&counts), Arc::clone(&counts));
    let check = async |counts: Arc<Counts>, text: &mut String| {
        count(&counts.checks);
        text.is_empty()
    };
    let before_acquire = async |counts: Arc<Counts>, _: &mut String| {
        count(&counts.acquires);
        true
    };
    let before_release = async |counts: Arc<Counts>, _: &mut String| {
        count(&counts.releases);
        true
    };
    let pool = Pool::from_fn(move || {
        let opens = Arc::clone(&opens);
        async move {
            count(&opens.opens);
            Ok::<_, &str>(String::new())
        }
    })
    .check_with(hook::with_state(Arc::clone(&counts), check))
    .before_acquire(hook::with_state(Arc::clone(&counts), before_acquire))
    .before_release(hook::with_state(Arc::clone(&counts), before_release))
    .close_with(move |_| {
        let closes = Arc::clone(&closes);
        async move {
            count(&closes.closes);
        }
    })
    .check_after_idle(Duration::ZERO)
    .max_size(1)
    .build()
    .unwrap();

    for _ in 0..3 {
        drop(pool.acquire().await.unwrap());
        settle().await;
    }
    pool.close();
    settle().await;

    assert_eq!(counts.all(), [1, 2, 2, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_decides_by_its_state() {
    let quota = Arc::new(AtomicUsize::new(0));
    let twice = async |quota: Arc<AtomicUsize>, _: &mut u8| count(&quota) % 3 != 0;
    let pool = Pool::from_fn(async || Ok::<_, &str>(0_u8))
        .before_release(hook::with_state(Arc::clone(&quota), twice))
        .max_size(1)
        .build()
        .unwrap();

    for _ in 0..6 {
        drop(pool.acquire().await.unwrap());
        settle().await;
    }

    assert_eq!(pool.status().closes.by(CloseReason::Refused), 2);
    assert_eq!(pool.status().opened, 2);
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_be_a_closure_that_returns_a_boxed_future() {
    fn shorter_than(limit: usize) -> impl Fn(&mut String) -> Answer<'_> {
        move |text| {
            Box::pin(async move {
                tokio::task::yield_now().await;
                text.len() < limit
            })
        }
    }
    let pool = Pool::from_fn(async || Ok::<_, &str>(String::new()))
        .before_acquire(shorter_than(3))
        .max_size(1)
        .build()
        .unwrap();

    pool.acquire().await.unwrap().push_str("ab");
    assert_eq!(*pool.acquire().await.unwrap(), "ab");
    pool.acquire().await.unwrap().push('c');

    assert_eq!(*pool.acquire().await.unwrap(), "");
    assert_eq!(pool.status().closes.by(CloseReason::Refused), 1);
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_hook_is_dropped_with_its_pool() {
    let state = Arc::new(());
    let pool = Pool::from_fn(async || Ok::<_, &str>(()))
        .before_acquire(hook::with_state(
            Arc::clone(&state),
            async |_: Arc<()>, (): &mut ()| true,
        ))
        .build()
        .unwrap();
    drop(pool.acquire().await.unwrap());
    drop(pool.acquire().await.unwrap());

    drop(pool);
    settle().await;

    assert_eq!(Arc::strong_count(&state), 1);
}
