//! The runtime of the model: shuttle's tasks and threads, and a clock that only timers turn. It
//! stands in for `on_tokio.rs`.
//!
//! A timer that is due soon is a task of its own, so it races with everything else, and the
//! scheduler decides which comes first. All other timers never end: a task that relies on one to
//! make up for a lost wake-up is stuck, and shuttle reports it.

use std::cell::{Cell, RefCell};
use std::future::{self, Future, poll_fn};
use std::mem::{self, ManuallyDrop};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use shuttle::current;
use shuttle::future::AbortHandle;
use shuttle::thread::{self, ThreadId};

use super::sync;

/// A timer that is due within this time is due soon. Far less than the second after which a waiter
/// looks again by itself.
const SOON: Duration = Duration::from_millis(100);

/// A thread of this name stands outside every runtime.
const OUTSIDE: &str = "outside";

// Shuttle runs all tasks and threads of one model in turn, on one thread of the system. These
// cells make no step of their own.
thread_local! {
    static NOW: Cell<Instant> = Cell::new(birth());
    static RUNTIME: RefCell<Runtime> = RefCell::default();
}

#[derive(Default)]
struct Runtime {
    /// How many runtimes there were before this one.
    number: u64,
    tasks: Vec<AbortHandle>,
}

/// Forgets the tasks of the run before. Every run of a model begins with this.
pub fn begin() {
    RUNTIME.take();
}

/// Ends the runtime: every task of the core is dropped where it stands. Later tasks run on the
/// next runtime.
pub fn shut_down() {
    let tasks = RUNTIME.with_borrow_mut(|runtime| {
        runtime.number += 1;
        mem::take(&mut runtime.tasks)
    });
    tasks.iter().for_each(AbortHandle::abort);
}

#[expect(
    clippy::disallowed_methods,
    reason = "an instant can be made in no other way; from here on it is turned by timers"
)]
fn birth() -> Instant {
    Instant::now()
}

/// The time.
pub(crate) fn now() -> Instant {
    NOW.get()
}

/// Waiters rely on the alarm.
pub(crate) fn is_real_time() -> bool {
    true
}

/// Runs `job` as a task of its own.
pub(crate) fn spawn(job: impl Future<Output = ()> + Send + 'static) {
    let task = start(job);
    RUNTIME.with_borrow_mut(|runtime| runtime.tasks.push(task));
}

/// Dropping the handle would detach the task. It is kept, so that a run ends only when all of its
/// tasks have: a task that outlives its pool is stuck, and shuttle reports it.
fn start(job: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    ManuallyDrop::new(shuttle::future::spawn(job)).abort_handle()
}

/// The number of a runtime.
pub(crate) type RuntimeId = u64;

/// The runtime of the caller.
pub(crate) fn runtime_id() -> Option<RuntimeId> {
    Some(RUNTIME.with_borrow(|runtime| runtime.number))
}

/// Blocking is always possible.
pub(crate) fn block<T>(job: impl FnOnce() -> T) -> Option<T> {
    Some(job())
}

/// Returns whether the caller runs on a runtime.
pub(crate) fn is_present() -> bool {
    thread::current().name() != Some(OUTSIDE)
}

/// Ends at `deadline` if that is soon, whenever the scheduler likes. Otherwise never.
pub(crate) async fn sleep_until(deadline: Option<Instant>) {
    let Some(deadline) = deadline.filter(|deadline| *deadline < now() + SOON) else {
        return future::pending().await;
    };
    let alarm = Alarm::set(deadline);
    poll_fn(|context| alarm.poll(context.waker())).await;
}

/// Parks the thread. A limit that is soon over is a timer like any other.
pub(crate) fn park_timeout(limit: Duration) {
    let _alarm = (limit < SOON).then(|| {
        let alarm = Alarm::set(now() + limit);
        let thread = thread::current();
        let _ = alarm.poll(&Waker::from(Arc::new(Unpark(thread))));
        alarm
    });
    thread::park();
}

struct Unpark(thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A timer. Dropped, it does not ring, and time does not move for it.
struct Alarm(Arc<Mutex<Ring>>);

#[derive(Default)]
struct Ring {
    rung: bool,
    waker: Option<Waker>,
}

impl Alarm {
    fn set(deadline: Instant) -> Self {
        let ring = Arc::new(Mutex::new(Ring::default()));
        let heard = Arc::downgrade(&ring);
        start(ring_at(deadline, heard));
        Self(ring)
    }

    fn poll(&self, waker: &Waker) -> Poll<()> {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ring.rung {
            return Poll::Ready(());
        }
        ring.waker = Some(waker.clone());
        Poll::Pending
    }
}

async fn ring_at(deadline: Instant, heard: Weak<Mutex<Ring>>) {
    let Some(ring) = heard.upgrade() else { return };
    NOW.set(now().max(deadline));
    let waker = {
        let mut ring = ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.rung = true;
        ring.waker.take()
    };
    drop(ring);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The caller: a task of the model, or a thread that blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Task(usize),
    Thread(ThreadId),
}

impl Owner {
    pub(crate) fn of_task() -> Option<Self> {
        is_present().then(|| Self::Task(current::me().into()))
    }

    pub(crate) fn of_holder() -> Self {
        Self::of_task().unwrap_or_else(Self::of_thread)
    }

    pub(crate) fn of_thread() -> Self {
        Self::Thread(thread::current().id())
    }
}

/// The runtime that a resource was opened on.
#[derive(Clone, Debug)]
pub(crate) struct Home(u64);

impl Home {
    pub(crate) fn here() -> Self {
        Self(RUNTIME.with_borrow(|runtime| runtime.number))
    }

    /// Returns whether that runtime has shut down.
    pub(crate) fn is_gone(&self) -> bool {
        RUNTIME.with_borrow(|runtime| runtime.number) != self.0
    }
}

/// A spin lock, made of a lock that shuttle knows.
#[derive(Debug)]
pub(crate) struct SpinLock<T>(sync::Mutex<T>);

impl<T> SpinLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock(&self) -> Option<sync::MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

/// Threads of the model. Their timeouts are the model's timers.
pub(crate) mod threads {
    pub(crate) use shuttle::thread::{Thread, current};

    pub(crate) use super::park_timeout;
}
