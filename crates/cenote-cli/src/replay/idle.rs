//! Tells when all tasks of a runtime wait, before the clock moves.

use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

/// The runtime calls [`Idle::wake`] before it rests. It rests only if that woke no task.
#[derive(Debug, Default)]
pub(super) struct Idle(Mutex<Option<Waker>>);

impl Idle {
    pub(super) fn wake(&self) {
        let waker = self.place().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends when no other task of the runtime can run. The clock stands still meanwhile.
    pub(super) async fn wait(&self) {
        let mut asked = false;
        poll_fn(|cx| {
            let mut place = self.place();
            if asked && place.is_none() {
                return Poll::Ready(());
            }
            asked = true;
            *place = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn place(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
