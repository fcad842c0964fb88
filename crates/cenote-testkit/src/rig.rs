//! The rig: a pool on a backend under control, and the questions that tests ask of it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cenote::{AcquireError, Builder, Lease, Pool};

use crate::backend::{Backend, Fault, GatedManager};
use crate::clock::settle;
use crate::recorder::Recorder;

/// A pool of a [`Backend`]'s things.
pub type GatedPool = Pool<GatedManager>;

/// A pool on a backend under control, with everything it does written down.
#[derive(Debug)]
pub struct Rig {
    /// The pool.
    pub pool: GatedPool,
    /// What stands behind it.
    pub backend: Arc<Backend>,
    /// What was observed.
    pub recorder: Arc<Recorder>,
}

impl Rig {
    /// A rig with the settings that `build` makes.
    pub fn new(build: impl FnOnce(Builder<GatedManager>) -> Builder<GatedManager>) -> Self {
        let backend = Arc::new(Backend::default());
        let recorder = Arc::new(Recorder::default());
        let builder = Pool::builder(GatedManager(Arc::clone(&backend))).observer(recorder.clone());
        let pool = build(builder)
            .build()
            .expect("the test's settings are valid");
        Self {
            pool,
            backend,
            recorder,
        }
    }

    /// A rig with this `max_size`, and the defaults.
    pub fn with_max_size(max_size: usize) -> Self {
        Self::new(|pool| pool.max_size(max_size))
    }

    /// Acquires, and must succeed.
    ///
    /// # Cancel safety
    /// As `Pool::acquire`.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Lease<GatedManager>> + Send {
        let acquiring = self.pool.acquire();
        async move { acquiring.await.expect("the pool has a resource") }
    }

    /// Opens `count` resources, and leaves them idle.
    ///
    /// # Cancel safety
    /// Dropped midway, some of them may be open.
    pub async fn leave_idle(&self, count: usize) {
        let mut leases = Vec::new();
        for _ in 0..count {
            leases.push(self.acquire().await);
        }
        drop(leases);
        settle().await;
        assert_eq!(self.pool.status().idle, count, "they were to be idle");
    }

    /// Joins the line now: an acquire that has been polled once. It can be awaited, or dropped.
    ///
    /// # Panics
    /// If it was served at once.
    pub fn wait(&self) -> Waiting {
        let mut waiting = Waiting::new(self.pool.clone());
        assert!(
            !waiting.is_served(),
            "it was to wait, and was served at once"
        );
        waiting
    }

    /// Asserts that nothing was lost: all `max_size` resources can be acquired, and no more. The backend is healed first.
    ///
    /// # Cancel safety
    /// Dropped midway, it gives back what it holds and has asserted nothing.
    pub async fn assert_full_service(&self) {
        self.backend.heal();
        let max_size = self.pool.status().max_size;
        let mut leases = Vec::new();
        for nth in 1..=max_size {
            match self.pool.acquire_timeout(Duration::from_secs(60)).await {
                Ok(lease) => leases.push(lease),
                Err(error) => panic!(
                    "a slot was lost: lease {nth} of {max_size}: {error}\n{:#?}",
                    self.pool.status()
                ),
            }
        }
        let more = self.pool.acquire_timeout(Duration::from_millis(10)).await;
        assert!(
            matches!(more, Err(AcquireError::TimedOut(_))),
            "one more than `max_size` was lent"
        );
        assert!(
            self.backend.peak() <= max_size,
            "{} existed at once, of {max_size}",
            self.backend.peak()
        );
        let status = self.pool.status();
        assert_eq!(
            (status.in_use, status.total, status.waiting),
            (max_size, max_size, 0)
        );
    }
}

type Acquiring =
    Pin<Box<dyn Future<Output = Result<Lease<GatedManager>, AcquireError<Fault>>> + Send>>;

/// Somebody in line.
pub struct Waiting {
    acquiring: Acquiring,
    served: Option<Result<Lease<GatedManager>, AcquireError<Fault>>>,
}

impl Waiting {
    fn new(pool: GatedPool) -> Self {
        Self {
            acquiring: Box::pin(async move { pool.acquire().await }),
            served: None,
        }
    }

    /// Was it served by now? Polls once.
    pub fn is_served(&mut self) -> bool {
        if self.served.is_none() {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(served) = self.acquiring.as_mut().poll(&mut context) {
                self.served = Some(served);
            }
        }
        self.served.is_some()
    }
}

impl Future for Waiting {
    type Output = Result<Lease<GatedManager>, AcquireError<Fault>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.served.take() {
            Some(served) => Poll::Ready(served),
            None => self.acquiring.as_mut().poll(context),
        }
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting")
            .field("served", &self.served.is_some())
            .finish_non_exhaustive()
    }
}

/// Drops `future` after `polls` polls: `None`, unless it ended before.
///
/// # Cancel safety
/// Dropping this drops `future`, which is the point of it.
pub async fn cut<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut left = polls;
    let mut future = pin!(future);
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
