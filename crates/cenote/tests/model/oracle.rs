//! The wake oracle: while an acquire is pending, the waker of its last poll is in the queue, on its
//! way to be woken, or was woken.
//!
//! A wake-up that is lost for good is a deadlock, and shuttle reports it. The oracle sees the loss
//! when it happens, also where the alarm or another poll would make up for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::world::{Acquired, Pooled};

/// An acquire under the oracle.
pub(crate) struct Watched<'a> {
    pool: &'a Pooled,
    acquiring: Option<Pin<Box<dyn Future<Output = Acquired> + Send + 'a>>>,
    last: Arc<Last>,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(
        pool: &'a Pooled,
        acquiring: impl Future<Output = Acquired> + Send + 'a,
    ) -> Self {
        Self {
            pool,
            acquiring: Some(Box::pin(acquiring)),
            last: Arc::default(),
        }
    }

    /// Returns whether it was woken since its last poll.
    pub(crate) fn is_woken(&self) -> bool {
        self.last.facts().is_woken
    }

    /// Returns whether the waker of this poll was woken, or can be.
    fn is_known(&self, tap: &Arc<Tap>) -> bool {
        let waker = Waker::from(Arc::clone(tap));
        let queued = self.pool.queued_wakers();
        if queued.iter().any(|other| other.will_wake(&waker)) {
            return true;
        }
        drop(queued);
        let (mine, of_this_waker) = (1, 1);
        // A thread that is about to wake it has taken it out of the queue.
        self.is_woken() || Arc::strong_count(tap) > mine + of_this_waker
    }
}

impl Future for Watched<'_> {
    type Output = Acquired;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Acquired> {
        let tap = self.last.poll_begins(context.waker());
        let waker = Waker::from(Arc::clone(&tap));
        let acquiring = self.acquiring.as_mut().expect("it was not ready before");
        let polled = acquiring.as_mut().poll(&mut Context::from_waker(&waker));
        drop(waker);
        if polled.is_pending() {
            assert!(
                self.is_known(&tap),
                "pending, and its last waker is nowhere"
            );
            self.last.facts().is_pending = true;
        }
        polled
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.last.facts().is_pending = false;
        self.acquiring = None;
        if !std::thread::panicking() {
            assert!(!self.last.facts().is_lost, "{LOST}");
        }
    }
}

const LOST: &str = "the waker of the last poll was dropped, and was not woken";

/// The last poll of an acquire.
#[derive(Default)]
struct Last(Mutex<Facts>);

#[derive(Default)]
struct Facts {
    /// How many polls there were.
    polls: usize,
    is_pending: bool,
    is_woken: bool,
    is_lost: bool,
}

impl Last {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_begins(self: &Arc<Self>, inner: &Waker) -> Arc<Tap> {
        let mut facts = self.facts();
        facts.polls += 1;
        facts.is_pending = false;
        facts.is_woken = false;
        Arc::new(Tap {
            last: Arc::clone(self),
            poll: facts.polls,
            inner: inner.clone(),
        })
    }
}

/// The waker of one poll.
struct Tap {
    last: Arc<Last>,
    poll: usize,
    inner: Waker,
}

impl Wake for Tap {
    fn wake(self: Arc<Self>) {
        let mut facts = self.last.facts();
        if facts.polls == self.poll {
            facts.is_woken = true;
        }
        drop(facts);
        self.inner.wake_by_ref();
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let mut facts = self.last.facts();
        let is_lost = facts.polls == self.poll && facts.is_pending && !facts.is_woken;
        if is_lost && !facts.is_lost {
            facts.is_lost = true;
            // The pool catches panics of wakers. If the acquire is stuck, shuttle reports a
            // deadlock after this.
            eprintln!("{LOST}");
        }
    }
}
