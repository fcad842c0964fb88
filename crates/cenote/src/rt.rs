//! The runtime: time, timers, tasks and threads. The only file that names tokio, and the only one that reads a clock.

use std::future::{self, Future};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::{self, ThreadId};
use std::time::Instant;

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
        // In this order, so that what is nearly now is never ahead.
        let instant = Instant::now();
        let at = kernel::now();
        (at.nanoseconds_since(before), instant, at)
    };
    // Whoever is put off between two readings tries again.
    let tries = (0..8).map(|_| both());
    let best = tries.min_by_key(|(took, ..)| *took);
    let (_, instant, at) = best.expect("bug: eight are some");
    (instant, at)
}

/// The real time, where nobody turns it by hand: the same, for half the price.
#[inline]
pub(crate) fn truly_now() -> Moment {
    kernel::truly_now()
}

/// The real time, a few milliseconds late at most, for a quarter of the price.
#[inline]
pub(crate) fn nearly_now() -> Moment {
    kernel::nearly_now()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod kernel {
    use rustix::time::{ClockId, clock_gettime};

    use crate::moment::Moment;

    pub(super) fn now() -> Moment {
        read(ClockId::Monotonic)
    }

    #[inline]
    pub(super) fn truly_now() -> Moment {
        now()
    }

    #[inline]
    pub(super) fn nearly_now() -> Moment {
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

    pub(super) fn truly_now() -> Moment {
        super::now()
    }

    pub(super) fn nearly_now() -> Moment {
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

/// Runs `job` on the caller's runtime, or on a thread of our own where there is none.
pub(crate) fn spawn(job: impl Future<Output = ()> + Send + 'static) {
    handle().spawn(job);
}

/// Is there a runtime here that a task can be given to without starting one?
pub(crate) fn is_present() -> bool {
    Handle::try_current().is_ok()
}

/// Ends at `deadline`, or never. Works on any executor.
pub(crate) async fn sleep_until(deadline: Option<Moment>) {
    let Some(deadline) = deadline.map(Moment::instant) else {
        return future::pending().await;
    };
    let sleep = if task::try_id().is_some() {
        time::sleep_until(deadline.into())
    } else {
        let handle = handle();
        let _entered = handle.enter();
        time::sleep_until(deadline.into())
    };
    sleep.await;
}

/// Who asks: a task, or a thread where there is no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Task(task::Id),
    Thread(ThreadId),
}

impl Owner {
    /// The task that is polled here. Inside `block_on`, which has no task, the thread. On a foreign executor nobody can
    /// tell the tasks apart, and a thread would be the wrong answer.
    pub(crate) fn of_task() -> Option<Self> {
        match task::try_id() {
            Some(id) => Some(Self::Task(id)),
            None if is_present() => Some(Self::of_thread()),
            None => None,
        }
    }

    /// Whoever takes something here without waiting for it: cheaper to tell, and on a foreign executor the thread is not wrong, for
    /// nobody who waits there is told by it.
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
    Handle::try_current().unwrap_or_else(|_| background().clone())
}

/// A runtime on a thread of its own, for programs that have none. Started on first need, it lives as long as the process.
fn background() -> &'static Handle {
    static BACKGROUND: OnceLock<Handle> = OnceLock::new();
    BACKGROUND.get_or_init(|| {
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
    })
}
