//! Shared by the models: a backend that counts, pools of its resources, threads, and acquires that
//! are polled by hand.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cenote::{AcquireError, Builder, Lease, Manager, Pool};
use shuttle::future::block_on;
use shuttle::sync::{Condvar, Mutex, MutexGuard};
use shuttle::thread::{self, JoinHandle};

use crate::oracle::Watched;

/// The backend of a pool. It counts its resources.
#[derive(Default)]
pub(crate) struct Backend {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    opened: u64,
    alive: usize,
    peak: usize,
    closed: usize,
}

/// The resource.
pub(crate) struct Thing {
    pub(crate) serial: u64,
    pub(crate) dirty: bool,
    backend: Arc<Backend>,
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.backend.change(|state| state.alive -= 1);
    }
}

impl Backend {
    fn change<T>(&self, how: impl FnOnce(&mut State) -> T) -> T {
        let done = how(&mut self.lock());
        self.changed.notify_all();
        done
    }

    /// How many resources were ever opened.
    pub(crate) fn opened(&self) -> u64 {
        self.lock().opened
    }

    /// The most resources that were ever alive at once.
    pub(crate) fn peak(&self) -> usize {
        self.lock().peak
    }

    /// Waits until no resource is alive. Returns how many the manager closed. If a resource lives
    /// for ever, shuttle reports a deadlock.
    pub(crate) fn wait_until_empty(&self) -> usize {
        let mut state = self.lock();
        while state.alive > 0 {
            state = self.changed.wait(state).expect(WHOLE);
        }
        state.closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(WHOLE)
    }
}

const WHOLE: &str = "a model ends with its first panic";

/// The manager that opens and closes resources of a [`Backend`].
pub(crate) struct Maker(Arc<Backend>);

impl Manager for Maker {
    type Resource = Thing;
    type Error = Infallible;

    async fn open(&self) -> Result<Thing, Infallible> {
        let serial = self.0.change(|state| {
            state.opened += 1;
            state.alive += 1;
            state.peak = state.peak.max(state.alive);
            state.opened
        });
        Ok(Thing {
            serial,
            dirty: false,
            backend: Arc::clone(&self.0),
        })
    }

    fn needs_cleaning(&self, thing: &mut Thing) -> bool {
        thing.dirty
    }

    async fn clean(&self, thing: &mut Thing) -> Result<(), Infallible> {
        thing.dirty = false;
        Ok(())
    }

    async fn close(&self, thing: Thing) -> Result<(), Infallible> {
        self.0.change(|state| state.closed += 1);
        drop(thing);
        Ok(())
    }
}

pub(crate) type Pooled = Pool<Maker>;
pub(crate) type Leased = Lease<Maker>;
pub(crate) type Acquired = Result<Leased, AcquireError<Infallible>>;

/// A pool of at most `max_size` resources, and its backend.
pub(crate) fn pool_of(max_size: usize) -> (Pooled, Arc<Backend>) {
    pool(|builder| builder.max_size(max_size))
}

pub(crate) fn pool(
    settings: impl FnOnce(Builder<Maker>) -> Builder<Maker>,
) -> (Pooled, Arc<Backend>) {
    let backend = Arc::new(Backend::default());
    let builder = Pool::builder(Maker(Arc::clone(&backend)))
        .name("model")
        .acquire_timeout(None);
    let pool = settings(builder).build().expect("the settings are valid");
    (pool, backend)
}

/// An acquire under the oracle.
fn watched(pool: &Pooled) -> Watched<'_> {
    Watched::new(pool, pool.acquire())
}

/// Waits for a lease as long as it takes. If a wake-up is lost, shuttle reports a deadlock.
pub(crate) fn acquire(pool: &Pooled) -> Leased {
    block_on(watched(pool)).expect("the pool stays open")
}

/// A thread with a handle of the pool.
pub(crate) fn thread_with<T: Send + 'static>(
    pool: &Pooled,
    act: impl FnOnce(&Pooled) -> T + Send + 'static,
) -> JoinHandle<T> {
    let pool = pool.clone();
    thread::spawn(move || act(&pool))
}

/// A thread that acquires and gives back at once. Returns the number of the resource.
pub(crate) fn visitor(pool: &Pooled) -> JoinHandle<u64> {
    thread_with(pool, |pool| acquire(pool).serial)
}

/// A thread that acquires, and returns the outcome.
pub(crate) fn caller(pool: &Pooled) -> JoinHandle<Acquired> {
    thread_with(pool, |pool| block_on(watched(pool)))
}

/// A thread that blocks until it has acquired, and gives back at once. Returns the number of the
/// resource.
pub(crate) fn blocked(pool: &Pooled) -> JoinHandle<u64> {
    outside_with(pool, |pool| {
        let acquired = pool.acquire_blocking();
        acquired.expect("the pool stays open").serial
    })
}

/// A thread outside every runtime, with a handle of the pool.
pub(crate) fn outside_with<T: Send + 'static>(
    pool: &Pooled,
    act: impl FnOnce(&Pooled) -> T + Send + 'static,
) -> JoinHandle<T> {
    let pool = pool.clone();
    outside(move || act(&pool))
}

/// A thread outside every runtime: it cannot start a task.
pub(crate) fn outside<T: Send + 'static>(
    act: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    thread::Builder::new()
        .name("outside".into())
        .spawn(act)
        .expect("the model has room for a thread")
}

/// Waits for all of these threads.
pub(crate) fn join<T, const N: usize>(threads: [JoinHandle<T>; N]) -> [T; N] {
    threads.map(|thread| thread.join().expect(WHOLE))
}

/// An acquire that is polled by hand.
pub(crate) struct ByHand<'a>(Pin<Box<Watched<'a>>>);

impl<'a> ByHand<'a> {
    /// Joins the queue. All resources must be lent.
    pub(crate) fn join(pool: &'a Pooled) -> Self {
        let mut joined = Self(Box::pin(watched(pool)));
        assert!(joined.poll().is_pending(), "all resources are lent");
        joined
    }

    pub(crate) fn poll(&mut self) -> Poll<Acquired> {
        let mut context = Context::from_waker(Waker::noop());
        self.0.as_mut().poll(&mut context)
    }

    /// Returns whether it was woken since its last poll.
    pub(crate) fn is_woken(&self) -> bool {
        self.0.is_woken()
    }
}

/// No lease is out, no caller waits, and there were never too many resources.
pub(crate) fn assert_at_rest(pool: &Pooled, backend: &Backend, max_size: usize) {
    let status = pool.status();
    assert_eq!((status.in_use, status.waiting), (0, 0), "{status:?}");
    let peak = backend.peak();
    assert!(peak <= max_size, "{peak} resources at once");
}
