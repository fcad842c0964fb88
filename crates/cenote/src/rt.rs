//! The runtime: time, timers, tasks and threads. The only file that names tokio, and the only one that reads a clock.

use std::future::{self, Future};
use std::panic::catch_unwind;
use std::process;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Id};
use tokio::task;
use tokio::time;

use crate::moment::Moment;

/// The time. Virtual where tokio's clock is paused, as in tests.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place where time enters"
)]
pub(crate) fn now() -> Moment {
    Moment::of(time::Instant::now().into_std())
}

/// Where instants and moments meet.
#[expect(clippy::disallowed_methods, reason = "the real time, for once")]
pub(crate) fn zero() -> (Instant, Moment) {
    let both = || {
        let before = kernel::now();
        // In this order, so that the coarse clock is never ahead.
        let instant = Instant::now();
        let at = kernel::now();
        (at.nanoseconds_since(before), instant, at)
    };
    // A thread that is put off between two readings tries again.
    let tries = (0..8).map(|_| both());
    let best = tries.min_by_key(|(took, ..)| *took);
    let (_, instant, at) = best.expect("bug: eight are some");
    (instant, at)
}

/// The real time, where tokio's clock is not paused: the same, at half the price.
#[inline]
pub(crate) fn exact_now() -> Moment {
    kernel::exact_now()
}

/// The real time, a few milliseconds late at most, at a quarter of the price.
#[inline]
pub(crate) fn coarse_now() -> Moment {
    kernel::coarse_now()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod kernel {
    use rustix::time::{ClockId, clock_gettime};

    use crate::moment::Moment;

    pub(super) fn now() -> Moment {
        read(ClockId::Monotonic)
    }

    #[inline]
    pub(super) fn exact_now() -> Moment {
        now()
    }

    #[inline]
    pub(super) fn coarse_now() -> Moment {
        read(ClockId::MonotonicCoarse)
    }

    #[inline]
    fn read(clock: ClockId) -> Moment {
        let time = clock_gettime(clock);
        let seconds = (time.tv_sec as u64).wrapping_mul(1_000_000_000);
        Moment::from_nanoseconds(seconds.wrapping_add(time.tv_nsec as u64))
    }
}

/// Where there is no cheaper clock.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod kernel {
    use crate::moment::Moment;

    /// A day after the beginning: a clock that somebody turns by hand may lie behind.
    pub(super) fn now() -> Moment {
        Moment::from_nanoseconds(24 * 60 * 60 * 1_000_000_000)
    }

    pub(super) fn exact_now() -> Moment {
        super::now()
    }

    pub(super) fn coarse_now() -> Moment {
        super::now()
    }
}

/// Is that the time on the wall? Not where tokio's clock is paused, or was.
#[expect(
    clippy::disallowed_methods,
    reason = "the other clock, to compare with"
)]
pub(crate) fn is_real_time() -> bool {
    let before = Instant::now();
    let now = time::Instant::now().into_std();
    before <= now && now <= Instant::now()
}

/// Runs `job` where tokio's clock is paused.
#[cfg(test)]
pub(crate) fn with_paused_time(job: impl FnOnce()) {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async { job() });
}

/// Runs `job` on a runtime of its own.
#[cfg(test)]
pub(crate) fn in_real_time<T>(job: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(job)
}

/// Runs `job` on the caller's runtime, or on a thread of our own where there is none.
pub(crate) fn spawn(job: impl Future<Output = ()> + Send + 'static) {
    handle().spawn(job);
}

/// Is there a runtime here that a task can be given to without starting one?
pub(crate) fn is_present() -> bool {
    Handle::try_current().is_ok()
}

/// Ends at `deadline`, or never. Works on any executor, and on a runtime without timers.
pub(crate) async fn sleep_until(deadline: Option<Moment>) {
    let Some(deadline) = deadline.map(Moment::instant) else {
        return future::pending().await;
    };
    let sleep = {
        let here = Handle::try_current().ok();
        let timers = here.filter(has_timers);
        let timers = timers.unwrap_or_else(background);
        let _entered = timers.enter();
        time::sleep_until(deadline.into())
    };
    sleep.await;
}

/// Returns whether timers are enabled on this runtime. Tokio tells that by a panic only, so each runtime is asked once.
fn has_timers(runtime: &Handle) -> bool {
    static KNOWN: Mutex<Vec<(Id, bool)>> = Mutex::new(Vec::new());
    /// Programs have few runtimes; tests have many, and need not remember them all.
    const MOST: usize = 64;

    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, has_timers)) = known.iter().find(|(id, _)| *id == runtime.id()) {
        return *has_timers;
    }
    let _entered = runtime.enter();
    let has_timers = catch_unwind(|| drop(time::sleep(Duration::ZERO))).is_ok();
    known.truncate(MOST);
    known.insert(0, (runtime.id(), has_timers));
    has_timers
}

/// Names a runtime.
pub(crate) type RuntimeId = Id;

/// The runtime of the caller, if it has one.
pub(crate) fn runtime_id() -> Option<RuntimeId> {
    Handle::try_current().ok().map(|handle| handle.id())
}

/// Runs `job`, which blocks this thread. `None`, and nothing is run, on the only thread of a runtime: the tasks that `job` waits for could
/// not run. On a worker of a larger runtime the other tasks of the worker move to another thread first.
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
    /// The task that is polled here. Inside `block_on`, which has no task, the thread. On a foreign executor tasks cannot be told apart, and
    /// a thread would be the wrong answer.
    pub(crate) fn of_task() -> Option<Self> {
        match task::try_id() {
            Some(id) => Some(Self::Task(id)),
            None if is_present() => Some(Self::of_thread()),
            None => None,
        }
    }

    /// The holder of a lease that was taken without waiting. Outside tokio this is the thread; that is safe, because circle detection only
    /// compares waiters that have a task id.
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

/// A value that goes with a future: seen by whatever is called while that future is polled, and by nothing else.
pub(crate) mod local {
    use std::cell::OnceCell;
    use std::future::Future;

    use crate::scope::Scope;

    // Empty until somebody asks for it.
    tokio::task_local!(static SCOPE: OnceCell<Scope>);

    pub(crate) fn with<F: Future>(scope: Scope, future: F) -> impl Future<Output = F::Output> {
        SCOPE.scope(OnceCell::from(scope), future)
    }

    pub(crate) fn current() -> Option<Scope> {
        SCOPE
            .try_with(|cell| cell.get_or_init(Scope::new).clone())
            .ok()
    }

    pub(crate) fn is_inside() -> bool {
        SCOPE.try_with(|_| ()).is_ok()
    }

    /// Makes a call in the scope of `cell`, which is opened by the first who asks for it.
    pub(crate) fn enter<T>(cell: &mut Option<Scope>, call: impl FnOnce() -> T) -> T {
        let inside = match cell.take() {
            Some(scope) => OnceCell::from(scope),
            None => OnceCell::new(),
        };
        SCOPE.sync_scope(inside, || {
            let _back = Back(cell);
            call()
        })
    }

    /// Takes the scope back that was opened meanwhile, also if the call panics.
    struct Back<'a>(&'a mut Option<Scope>);

    impl Drop for Back<'_> {
        fn drop(&mut self) {
            *self.0 = SCOPE.with(|cell| cell.get().cloned());
        }
    }
}

/// The runtime that a resource was opened on, for its sockets live in that runtime's reactor and die with it.
#[derive(Clone, Debug)]
pub(crate) struct Home(Weak<()>);

impl Home {
    /// The runtime that this task runs on. A tiny task there holds the other end of the reference for as long as it lives.
    pub(crate) fn here() -> Self {
        static HOMES: Mutex<Vec<(Id, Weak<()>)>> = Mutex::new(Vec::new());

        let handle = handle();
        let mut homes = HOMES.lock().unwrap_or_else(PoisonError::into_inner);
        homes.retain(|(_, life)| life.strong_count() > 0);
        if let Some((_, life)) = homes.iter().find(|(id, _)| *id == handle.id()) {
            return Self(life.clone());
        }
        let life = Arc::new(());
        let home = Self(Arc::downgrade(&life));
        homes.push((handle.id(), home.0.clone()));
        drop(homes);
        handle.spawn(async move {
            let _life = life;
            future::pending::<()>().await;
        });
        home
    }

    /// Has that runtime shut down?
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

fn handle() -> Handle {
    Handle::try_current().unwrap_or_else(|_| background())
}

/// A runtime on a thread of its own, for programs that have none. Started on first need, it lives as long as the process. A process that
/// forks has none of its threads, so the child starts another.
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
