//! The runtime of the model: shuttle's tasks and threads, and a clock that only timers turn. Stands in for `rt.rs`.
//!
//! A timer that is due soon is a task of its own, so it races with everything else, and the scheduler decides who wins. All other timers
//! never end: whoever relies on one to make up for a lost wake-up is stuck, and shuttle says so.

use std::cell::{Cell, RefCell};
use std::future::{self, Future, poll_fn};
use std::mem::{self, ManuallyDrop};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use shuttle::current;
use shuttle::future::AbortHandle;
use shuttle::thread::{self, ThreadId};

use crate::moment::Moment;

/// What is due within this time is due soon. Far less than the second after which a waiter looks again by itself.
const SOON: Duration = Duration::from_millis(100);

/// A thread of this name stands outside every runtime.
const OUTSIDE: &str = "outside";

// Shuttle runs all tasks and threads of one model in turn, on one thread of the system. What is here makes no step of its own.
thread_local! {
    static NOW: Cell<Moment> = Cell::new(Moment::of(birth()));
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

/// Ends the runtime: every task of the core is dropped where it stands. What is started from now on runs on the next runtime.
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
pub(crate) fn now() -> Moment {
    NOW.get()
}

pub(crate) fn zero() -> (Instant, Moment) {
    (birth(), Moment::from_nanoseconds(1 << 50))
}

/// There is no other time.
pub(crate) fn coarse_now() -> Moment {
    now()
}

pub(crate) fn exact_now() -> Moment {
    now()
}

/// Those who wait rely on the alarm.
pub(crate) fn is_real_time() -> bool {
    true
}

/// Runs `job` as a task of its own.
pub(crate) fn spawn(job: impl Future<Output = ()> + Send + 'static) {
    let task = start(job);
    RUNTIME.with_borrow_mut(|runtime| runtime.tasks.push(task));
}

/// Dropping the handle would detach the task. It is kept, so that a run ends only when all of its tasks have: a task that outlives its
/// pool is stuck, and shuttle says so.
fn start(job: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    ManuallyDrop::new(shuttle::future::spawn(job)).abort_handle()
}

/// Names a runtime.
pub(crate) type RuntimeId = u64;

/// The runtime of the caller.
pub(crate) fn runtime_id() -> Option<RuntimeId> {
    Some(RUNTIME.with_borrow(|runtime| runtime.number))
}

/// Blocking is always possible.
pub(crate) fn block<T>(job: impl FnOnce() -> T) -> Option<T> {
    Some(job())
}

/// Is there a runtime here?
pub(crate) fn is_present() -> bool {
    thread::current().name() != Some(OUTSIDE)
}

/// Ends at `deadline` if that is soon, whenever the scheduler likes. Otherwise never.
pub(crate) async fn sleep_until(deadline: Option<Moment>) {
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
    fn set(deadline: Moment) -> Self {
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

async fn ring_at(deadline: Moment, heard: Weak<Mutex<Ring>>) {
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

/// Who asks: a task of the model, or a thread that blocks.
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

    /// Has that runtime shut down?
    pub(crate) fn is_gone(&self) -> bool {
        RUNTIME.with_borrow(|runtime| runtime.number) != self.0
    }
}
