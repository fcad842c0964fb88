//! The upkeep task: one per pool, how it is woken, and how the rest learns whether there is one.
//!
//! The task holds no strong reference to its pool while it sleeps, so a forgotten pool is dropped.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use super::carry_out::Place;
use super::shared::Shared;
use crate::log::Log;
use crate::manager::Manager;
use crate::rt::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError};
use crate::rt::{self, RuntimeId};
use crate::time::{self, Moment};

/// Starts the upkeep task, unless there is one. Called on every acquire by the ledger: a task that
/// ended with its runtime is started again on the runtime of the next caller.
#[inline]
pub(crate) fn start<M: Manager + 'static>(shared: &Arc<Shared<M>>) {
    if !shared.upkeep.is_running() {
        spawn(shared, |state, _| state.task == 0);
    }
}

/// The upkeep is overdue, so the task may be on a runtime that is no longer driven: it is replaced
/// by one on the runtime of this caller. A task on this very runtime is only late.
#[cold]
pub(crate) fn take_over<M: Manager + 'static>(shared: &Arc<Shared<M>>) {
    spawn(shared, |state, here| state.runtime != here);
}

#[cold]
fn spawn<M: Manager + 'static>(
    shared: &Arc<Shared<M>>,
    may_start: impl FnOnce(&State<M>, Option<RuntimeId>) -> bool,
) {
    let here = rt::runtime_id();
    let mut state = shared.upkeep.lock();
    if !may_start(&state, here) {
        return;
    }
    state.tasks += 1;
    state.task = state.tasks;
    state.runtime = here;
    shared.upkeep.running.store(true, Ordering::Release);
    // Made before the task, which may be dropped before it was ever polled.
    let watch = Watch {
        shared: Arc::downgrade(shared),
        upkeep: Arc::clone(&shared.upkeep),
        task: state.task,
    };
    drop(state);
    rt::spawn(run(watch));
}

/// The upkeep of one pool.
pub(crate) struct Upkeep<M: Manager + 'static> {
    /// There is a task. Read on every acquire by the ledger, written when the task starts and ends.
    running: AtomicBool,
    state: Mutex<State<M>>,
}

struct State<M: Manager + 'static> {
    /// The number of the current task; zero if there is none. A task that was replaced ends when it
    /// wakes.
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

    /// Wakes the task, if there is one. A guest keeps the pool alive until the task has run.
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
        let mut timer = pin!(time::sleep_until(at));
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
        let next = keep_up(&shared);
        drop(shared);
        watch.upkeep.rung_or_at(watch.task, next).await;
    }
}

/// One round of upkeep. Returns when the next is due.
fn keep_up<M: Manager + 'static>(shared: &Arc<Shared<M>>) -> Option<Moment> {
    if shared.clock.notice_pause() {
        // The alarm knows the real time only, so the waiters need timers of their own.
        shared.call_helpers();
    }
    shared.ask_recovery();
    let upkeep = shared.order(Place::Task, |ledger, now, orders| {
        ledger.stand_in_for_alarm(now, orders);
        ledger.upkeep(now, orders)
    });
    for holder in &upkeep.leaked {
        shared.observers.leaked(holder);
    }
    if Log::is_on() {
        shared.observers.write(|log| log.flush(&shared.name));
    }
    upkeep.next
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
        // The runtime may be shutting down while a caller waits on another: it starts the task
        // there.
        if let Some(shared) = self.shared.upgrade() {
            drop(shared.ledger_off_trays());
            shared.ask_for_help();
        }
    }
}
