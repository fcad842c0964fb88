//! The rig: a pool on a backend under control, with the assertions that tests share.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cenote::{AcquireError, Builder, Lease, Pool};

use crate::backend::{Backend, Fault, GatedManager};
use crate::clock::settle;
use crate::recorder::Recorder;

/// A pool of the things of a [`Backend`].
pub type GatedPool = Pool<GatedManager>;

/// A pool on a backend under control, whose events are recorded.
#[derive(Debug)]
pub struct Rig {
    /// The pool.
    pub pool: GatedPool,
    /// The backend behind the pool.
    pub backend: Arc<Backend>,
    /// The recorded events.
    pub recorder: Arc<Recorder>,
}

impl Rig {
    /// Builds a rig with the settings that `build` adds.
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

    /// Builds a rig with this `max_size` and the defaults.
    pub fn with_max_size(max_size: usize) -> Self {
        Self::new(|pool| pool.max_size(max_size))
    }

    /// Acquires a lease.
    ///
    /// # Panics
    /// If the acquire fails.
    ///
    /// # Cancel safety
    /// As `Pool::acquire`.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Lease<GatedManager>> + Send {
        let acquiring = self.pool.acquire();
        async move { acquiring.await.expect("the pool has a resource") }
    }

    /// Opens `count` resources and leaves them idle.
    ///
    /// # Cancel safety
    /// If the future is dropped midway, some resources may be open.
    pub async fn leave_idle(&self, count: usize) {
        let mut leases = Vec::new();
        for _ in 0..count {
            leases.push(self.acquire().await);
        }
        drop(leases);
        settle().await;
        assert_eq!(self.pool.status().idle, count, "they were to be idle");
    }

    /// Joins the queue now. Returns an acquire that has been polled once, which can be awaited or
    /// dropped.
    ///
    /// # Panics
    /// If the acquire was served at once.
    pub fn wait(&self) -> Waiting {
        let mut waiting = Waiting::new(self.pool.clone());
        assert!(
            !waiting.is_served(),
            "it was to wait, and was served at once"
        );
        waiting
    }

    /// Asserts that no slot was lost: exactly `max_size` resources can be acquired. It heals the
    /// backend first.
    ///
    /// # Cancel safety
    /// If the future is dropped midway, it gives back its leases and has asserted nothing.
    pub async fn assert_full_service(&self) {
        self.backend.heal();
        let max_size = self.pool.status().max_size;
        let mut leases = Vec::new();
        for nth in 1..=max_size {
            match self.pool.acquire_within(Duration::from_secs(60)).await {
                Ok(lease) => leases.push(lease),
                Err(error) => panic!(
                    "a slot was lost: lease {nth} of {max_size}: {error}\n{:#?}",
                    self.pool.status()
                ),
            }
        }
        let more = self.pool.acquire_within(Duration::from_millis(10)).await;
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

/// An acquire in the queue.
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

    /// Polls once, and returns whether the acquire has ended.
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
