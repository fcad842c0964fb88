//! The rig: pools on backends under control, with the assertions that tests share.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cenote::Lease;
use cenote_keyed::{Acquire, Builder, Keyed, Pools};
use cenote_testkit::clock::settle;
use cenote_testkit::{Backend, GatedManager};

use crate::LIMIT;

pub(crate) type Key = u32;
pub(crate) type GatedLease = Lease<Keyed<GatedManager>>;

/// Pools in which every key has a backend of its own.
pub(crate) struct Rig {
    pub(crate) pools: Pools<Key, GatedManager>,
    backends: Backends,
}

type Backends = Arc<Mutex<HashMap<Key, Arc<Backend>>>>;

impl Rig {
    /// At most `total` resources, and `max_size` of one key.
    pub(crate) fn new(total: usize, max_size: usize) -> Self {
        Self::with(|pools| pools.total(total).max_size(max_size))
    }

    pub(crate) fn with(
        build: impl FnOnce(Builder<Key, GatedManager>) -> Builder<Key, GatedManager>,
    ) -> Self {
        let backends = Backends::default();
        let all = Arc::clone(&backends);
        let pools = Pools::builder(move |key: &Key| {
            let backend = Arc::clone(all.lock().unwrap().entry(*key).or_default());
            GatedManager(backend)
        });
        let pools = build(pools.acquire_timeout(LIMIT)).build().unwrap();
        Self { pools, backends }
    }

    pub(crate) fn backend(&self, key: Key) -> Arc<Backend> {
        Arc::clone(self.backends.lock().unwrap().entry(key).or_default())
    }

    pub(crate) fn alive(&self) -> usize {
        let backends = self.backends.lock().unwrap();
        backends.values().map(|backend| backend.alive()).sum()
    }

    pub(crate) fn heal(&self) {
        let backends = self.backends.lock().unwrap();
        backends.values().for_each(|backend| backend.heal());
    }

    pub(crate) async fn acquire(&self, key: Key) -> GatedLease {
        self.pools.acquire(&key).await.unwrap()
    }

    pub(crate) async fn hold(&self, key: Key, count: usize) -> Vec<GatedLease> {
        let mut leases = Vec::new();
        for _ in 0..count {
            leases.push(self.acquire(key).await);
        }
        leases
    }

    /// Joins the queue of a key. Returns an acquire that was polled once.
    pub(crate) fn wait(&self, key: Key) -> Waiting {
        let mut waiting = Waiting {
            acquiring: Box::pin(self.pools.acquire(&key)),
            served: None,
        };
        assert!(!waiting.is_served(), "it was to wait");
        waiting
    }

    /// Asserts that no place was lost: all of `total` can be held at once, each by another key that
    /// is new, and no more.
    pub(crate) async fn assert_full_service(&self) {
        self.heal();
        let total = self.pools.status().total;
        let mut leases = Vec::new();
        for nth in 0..total {
            let key = 1_000_000 + nth as Key;
            let lease = self.pools.acquire_within(&key, 60 * crate::SECOND).await;
            leases.push(lease.unwrap_or_else(|error| {
                panic!(
                    "place {nth} of {total} was lost: {error}\n{:?}",
                    self.pools.status()
                )
            }));
        }
        let more = self.pools.acquire_within(&1, crate::SECOND).await;
        assert!(more.is_err(), "more than the total was lent");
        settle().await;
        let status = self.pools.status();
        assert_eq!((status.held, status.leaving), (total, 0));
        drop(leases);
        settle().await;
    }
}

/// An acquire in the queue.
pub(crate) struct Waiting {
    acquiring: Pin<Box<dyn Future<Output = Acquire<GatedManager>> + Send>>,
    served: Option<Acquire<GatedManager>>,
}

impl Waiting {
    /// Polls once, and returns whether the acquire has ended.
    pub(crate) fn is_served(&mut self) -> bool {
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
    type Output = Acquire<GatedManager>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.served.take() {
            Some(served) => Poll::Ready(served),
            None => self.acquiring.as_mut().poll(context),
        }
    }
}
