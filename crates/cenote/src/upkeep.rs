//! The upkeep task: one per pool, how it is woken, and how the rest learns whether there is one.
//!
//! The task holds no strong reference to its pool while it sleeps, so a forgotten pool is dropped.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use crate::manager::Manager;
use crate::moment::Moment;
use crate::rt::{self, RuntimeId};
use crate::shared::Shared;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError};

/// Starts the upkeep task, unless there is one. Called on every acquire by the ledger: a task that ended with its runtime is started again on
/// the runtime of the next caller.
#[inline]
pub(crate) fn start<M: Manager + 'static>(shared: &Arc<Shared<M>>) {
    if !shared.upkeep.is_running() {
        let here = rt::runtime_id();
        spawn(shared, |state| (state.task == 0).then_some(here));
    }
}

/// The upkeep is overdue, so the task may be on a runtime that is no longer driven: it is replaced by one on the runtime of this caller.
/// A task on this very runtime is only late.
#[cold]
pub(crate) fn take_over<M: Manager + 'static>(shared: &Arc<Shared<M>>) {
    let here = rt::runtime_id();
    spawn(shared, |state| (state.runtime != here).then_some(here));
}

#[cold]
fn spawn<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    may_start: impl FnOnce(&State<M>) -> Option<Option<RuntimeId>>,
) {
    let upkeep = &shared.upkeep;
    let task = {
        let mut state = upkeep.lock();
        let Some(here) = may_start(&state) else {
            return;
        };
        state.tasks += 1;
        state.task = state.tasks;
        state.runtime = here;
        upkeep.running.store(true, Ordering::Release);
        state.task
    };
    // Made before the task is: it may be dropped before it was ever polled.
    let watch = Watch {
        shared: Arc::downgrade(shared),
        upkeep: Arc::clone(upkeep),
        task,
    };
    rt::spawn(run(watch));
}

/// The upkeep of one pool.
pub(crate) struct Upkeep<M: Manager + 'static> {
    /// There is a task. Read on every acquire by the ledger, written when the task starts and ends.
    running: AtomicBool,
    state: Mutex<State<M>>,
}

struct State<M: Manager + 'static> {
    /// The number of the current task; zero if there is none. A task that was replaced ends when it wakes.
    task: u64,
    /// How many tasks were started.
    tasks: u64,
    /// The runtime of the current task, if the caller that started it had one.
    runtime: Option<RuntimeId>,
    rung: bool,
    waker: Option<Waker>,
    /// Keeps the pool alive until the task has done the work that its last lease left behind.
    guest: Option<Arc<Shared<M>>>,
}

impl<M: Manager + 'static> Upkeep<M> {
    pub(crate) fn new() -> Self {
        let state = State {
            task: 0,
            tasks: 0,
            runtime: None,
            rung: false,
            waker: None,
            guest: None,
        };
        Self {
            running: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }

    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    /// Wakes the task, if there is one. With a guest, the pool lives until it has woken.
    pub(crate) fn ring(&self, guest: Option<Arc<Shared<M>>>) {
        let mut state = self.lock();
        if state.task == 0 {
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

    /// Ends when the task is rung, at `at`, or when the task was replaced.
    async fn rung_or_at(&self, task: u64, at: Option<Moment>) {
        let mut timer = pin!(rt::sleep_until(at));
        poll_fn(|context| {
            let mut waker = Some(context.waker().clone());
            let mut state = self.lock();
            if state.task != task || mem::take(&mut state.rung) {
                drop(state);
                return Poll::Ready(());
            }
            mem::swap(&mut state.waker, &mut waker);
            drop(state);
            drop(waker);
            timer.as_mut().poll(context)
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Watch<M: Manager + 'static> {
    shared: Weak<Shared<M>>,
    upkeep: Arc<Upkeep<M>>,
    task: u64,
}

async fn run<M: Manager + 'static>(watch: Watch<M>) {
    while let Some(shared) = watch.pool() {
        let next = shared.keep_up();
        drop(shared);
        watch.upkeep.rung_or_at(watch.task, next).await;
    }
}

impl<M: Manager + 'static> Watch<M> {
    /// The pool, if it is still alive and this is its task.
    fn pool(&self) -> Option<Arc<Shared<M>>> {
        let mut state = self.upkeep.lock();
        if state.task != self.task {
            return None;
        }
        let guest = state.guest.take();
        drop(state);
        guest.or_else(|| self.shared.upgrade())
    }
}

impl<M: Manager + 'static> Drop for Watch<M> {
    fn drop(&mut self) {
        let mut state = self.upkeep.lock();
        if state.task != self.task {
            return;
        }
        state.task = 0;
        state.rung = false;
        self.upkeep.running.store(false, Ordering::Release);
        let left = (state.guest.take(), state.waker.take());
        drop(state);
        drop(left);
        // The runtime may be shutting down while a caller waits on another: it starts the task there.
        if let Some(shared) = self.shared.upgrade() {
            drop(shared.ledger_off_trays());
            shared.ask_for_help();
        }
    }
}
