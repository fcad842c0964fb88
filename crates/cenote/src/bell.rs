//! The bell: how the upkeep task is woken, and how the rest learns whether there is one.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::manager::Manager;
use crate::moment::Moment;
use crate::rt;
use crate::shared::Shared;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError};

pub(crate) struct Bell<M: Manager + 'static> {
    /// Is there an upkeep task? Read on every acquire, written when it starts and ends.
    answered: AtomicBool,
    state: Mutex<State<M>>,
}

struct State<M: Manager + 'static> {
    rung: bool,
    waker: Option<Waker>,
    /// Keeps the pool alive until the upkeep task has done the work that its last lease left behind.
    guest: Option<Arc<Shared<M>>>,
}

impl<M: Manager + 'static> Bell<M> {
    pub(crate) fn new() -> Self {
        let state = State {
            rung: false,
            waker: None,
            guest: None,
        };
        Self {
            answered: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    /// Becomes the one who answers; false if there is one already.
    pub(crate) fn answer(&self) -> bool {
        !self.answered.swap(true, Ordering::AcqRel)
    }

    /// The one who answered is gone. What was left with it goes too.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        self.answered.store(false, Ordering::Release);
        let left = (state.guest.take(), state.waker.take());
        state.rung = false;
        drop(state);
        drop(left);
    }

    /// Wakes the upkeep task. With a guest, the pool lives until it has woken. Nobody there: nothing happens.
    pub(crate) fn ring(&self, guest: Option<Arc<Shared<M>>>) {
        let mut state = self.lock();
        if !self.is_answered() {
            drop(state);
            return;
        }
        state.rung = true;
        let before = guest.and_then(|guest| state.guest.replace(guest));
        let waker = state.waker.take();
        drop(state);
        drop(before);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn guest(&self) -> Option<Arc<Shared<M>>> {
        self.lock().guest.take()
    }

    /// Ends when the bell rings, or at `at`.
    pub(crate) async fn rung_or_at(&self, at: Option<Moment>) {
        let mut timer = pin!(rt::sleep_until(at));
        poll_fn(|context| {
            let mut state = self.lock();
            if std::mem::take(&mut state.rung) {
                return Poll::Ready(());
            }
            let before = state.waker.replace(context.waker().clone());
            drop(state);
            drop(before);
            timer.as_mut().poll(context)
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
