//! Tokio: tasks, timers, threads and its clock. The only file of the core that names it.

use std::cell::Cell;
use std::future::{self, Future};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Id};
use tokio::task;
use tokio::time;

/// The time. Virtual where tokio's clock is paused, as in tests.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place where time enters"
)]
pub(crate) fn now() -> Instant {
    time::Instant::now().into_std()
}

/// Returns whether tokio's clock shows the real time. It does not where it is paused, or was.
#[expect(
    clippy::disallowed_methods,
    reason = "the other clock, to compare with"
)]
pub(crate) fn is_real_time() -> bool {
    let before = Instant::now();
    let now = time::Instant::now().into_std();
    before <= now && now <= Instant::now()
}

/// Runs `job` on the caller's runtime, or on a thread of our own where there is none.
pub(crate) fn spawn(job: impl Future<Output = ()> + Send + 'static) {
    handle().spawn(job);
}

/// Runs `job` on this thread, in the caller's `LocalSet`. Returns it if there is no such set.
pub(crate) fn spawn_local<F: Future<Output = ()> + 'static>(job: F) -> Result<(), F> {
    let place = Rc::new(Cell::new(Some(job)));
    let task = Rc::clone(&place);
    // Tokio tells by a panic only that there is no set.
    let spawned = catch_unwind(AssertUnwindSafe(|| {
        drop(task::spawn_local(async move {
            if let Some(job) = task.take() {
                job.await;
            }
        }));
    }));
    match spawned {
        Ok(()) => Ok(()),
        Err(_) => Err(place
            .take()
            .expect("bug: a task that never began has its job")),
    }
}

/// Returns whether the caller runs on a runtime.
pub(crate) fn is_present() -> bool {
    Handle::try_current().is_ok()
}

/// Ends at `deadline`, or never. Works on any executor, and on a runtime without timers.
pub(crate) async fn sleep_until(deadline: Option<Instant>) {
    let Some(deadline) = deadline else {
        return future::pending().await;
    };
    let sleep = {
        let here = Handle::try_current().ok();
        let timers = here.filter(|here| Runtime::of(here).has_timers);
        let timers = timers.unwrap_or_else(background);
        let _entered = timers.enter();
        time::sleep_until(deadline.into())
    };
    sleep.await;
}

/// The number of a runtime.
pub(crate) type RuntimeId = Id;

/// The runtime of the caller, if it has one.
pub(crate) fn runtime_id() -> Option<RuntimeId> {
    Handle::try_current().ok().map(|handle| handle.id())
}

/// Runs `job`, which blocks this thread. `None`, and nothing is run, on the only thread of a
/// runtime: the tasks that `job` waits for could not run. On a worker of a larger runtime the other
/// tasks of the worker move to another thread first.
pub(crate) fn block<T>(job: impl FnOnce() -> T) -> Option<T> {
    if !is_present() {
        return Some(job());
    }
    // Tokio tells this by a panic only.
    let may_block = catch_unwind(|| task::block_in_place(|| ())).is_ok();
    may_block.then(|| task::block_in_place(job))
}

/// The task that asks, or the thread where there is no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Task(task::Id),
    Thread(ThreadId),
}

impl Owner {
    /// The task that is polled here. Inside `block_on`, which has no task, the thread. On a foreign
    /// executor tasks cannot be told apart, and a thread would be the wrong answer.
    pub(crate) fn of_task() -> Option<Self> {
        match task::try_id() {
            Some(id) => Some(Self::Task(id)),
            None if is_present() => Some(Self::of_thread()),
            None => None,
        }
    }

    /// The holder of a lease that was taken without waiting. Outside tokio this is the thread; that
    /// is safe, because circle detection only compares waiters that have a task id.
    #[inline]
    pub(crate) fn of_holder() -> Self {
        task::try_id().map_or_else(Self::of_thread, Self::Task)
    }

    /// The thread that blocks here.
    pub(crate) fn of_thread() -> Self {
        thread_local!(static ID: ThreadId = thread::current().id());
        Self::Thread(
            ID.try_with(|id| *id)
                .unwrap_or_else(|_| thread::current().id()),
        )
    }
}

/// A value that every poll of a future sees, and no other code.
pub(crate) use tokio::task_local;

/// The runtime that a resource was opened on. Its sockets are registered with the reactor of that
/// runtime, and die with it.
#[derive(Clone, Debug)]
pub(crate) struct Home(Weak<()>);

impl Home {
    /// The runtime of the caller.
    pub(crate) fn here() -> Self {
        Self(Runtime::of(&handle()).life)
    }

    /// Returns whether that runtime has shut down.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// What is known of a runtime.
#[derive(Clone)]
struct Runtime {
    id: Id,
    /// A small task holds the strong reference for as long as the runtime lives.
    life: Weak<()>,
    has_timers: bool,
}

impl Runtime {
    fn of(handle: &Handle) -> Self {
        static KNOWN: Mutex<Vec<Runtime>> = Mutex::new(Vec::new());

        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let is_this = |runtime: &&Self| runtime.id == handle.id();
        if let Some(runtime) = known().iter().find(is_this) {
            return runtime.clone();
        }
        let life = Arc::new(());
        let _entered = handle.enter();
        let runtime = Self {
            id: handle.id(),
            life: Arc::downgrade(&life),
            // Tokio tells by a panic that timers are not enabled. The panic hook is user code, so
            // no lock is held.
            has_timers: catch_unwind(|| drop(time::sleep(Duration::ZERO))).is_ok(),
        };
        known().retain(|runtime| runtime.life.strong_count() > 0);
        known().push(runtime.clone());
        handle.spawn(async move {
            let _life = life;
            future::pending::<()>().await;
        });
        runtime
    }
}

fn handle() -> Handle {
    Handle::try_current().unwrap_or_else(|_| background())
}

/// A runtime on a thread of its own, for programs that have none. Started on first need, it lives
/// as long as the process. A process that forks has none of its threads, so the child starts
/// another.
fn background() -> Handle {
    static BACKGROUND: Mutex<Option<(u32, Handle)>> = Mutex::new(None);

    let mut known = BACKGROUND.lock().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some((process, handle)) if *process == process::id() => handle.clone(),
        _ => {
            let handle = start_background();
            *known = Some((process::id(), handle.clone()));
            handle
        }
    }
}

fn start_background() -> Handle {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the operating system can start a runtime");
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("cenote".into())
        .spawn(move || runtime.block_on(future::pending::<()>()))
        .expect("the operating system can start a thread");
    handle
}

#[cfg(test)]
pub(crate) use tests::{in_real_time, with_paused_time};

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `job` where tokio's clock is paused.
    pub(crate) fn with_paused_time(job: impl FnOnce()) {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async { job() });
    }

    /// Runs `job` on a runtime of its own.
    pub(crate) fn in_real_time<T>(job: impl Future<Output = T>) -> T {
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(job)
    }
}
