//! What the models share: a backend that counts, pools of it, threads, and futures that are polled by hand.

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

/// What stands behind a pool.
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

/// What is pooled.
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

    /// How many were ever opened.
    pub(crate) fn opened(&self) -> u64 {
        self.lock().opened
    }

    /// The most that ever lived at once.
    pub(crate) fn peak(&self) -> usize {
        self.lock().peak
    }

    /// Waits until nothing lives any more, and answers how many were closed by the manager. Stuck if something lives for ever.
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

/// The manager of a [`Backend`].
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

    async fn close(&self, thing: Thing) {
        self.0.change(|state| state.closed += 1);
        drop(thing);
    }
}

pub(crate) type Pooled = Pool<Maker>;
pub(crate) type Leased = Lease<Maker>;
pub(crate) type Acquired = Result<Leased, AcquireError<Infallible>>;

/// A pool of at most `max_size`, and what stands behind it.
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

/// A lease, waited for as long as it takes. A lost wake-up is a deadlock here.
pub(crate) fn acquire(pool: &Pooled) -> Leased {
    block_on(watched(pool)).expect("the pool stays open")
}

/// A thread that acquires and at once gives back. Answers with the number of the resource it had.
pub(crate) fn visitor(pool: &Pooled) -> JoinHandle<u64> {
    let pool = pool.clone();
    thread::spawn(move || acquire(&pool).serial)
}

/// A thread that acquires, whatever comes of it, and keeps what it got.
pub(crate) fn caller(pool: &Pooled) -> JoinHandle<Acquired> {
    let pool = pool.clone();
    thread::spawn(move || block_on(watched(&pool)))
}

/// A thread that stands outside every runtime: what it does must not start a task.
pub(crate) fn outside<T: Send + 'static>(
    act: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    thread::Builder::new()
        .name("outside".into())
        .spawn(act)
        .expect("the model has room for a thread")
}

/// Waits for all of them.
pub(crate) fn join<T, const N: usize>(threads: [JoinHandle<T>; N]) -> [T; N] {
    threads.map(|thread| thread.join().expect(WHOLE))
}

/// An acquire that is polled by hand.
pub(crate) struct ByHand<'a>(Pin<Box<Watched<'a>>>);

impl<'a> ByHand<'a> {
    /// Joins the queue. Everything must be out.
    pub(crate) fn join(pool: &'a Pooled) -> Self {
        let mut joined = Self(Box::pin(Watched::new(pool, pool.acquire())));
        assert!(joined.poll().is_pending(), "everything is out");
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

/// What must hold once everybody has gone home.
pub(crate) fn assert_at_rest(pool: &Pooled, backend: &Backend, max_size: usize) {
    let status = pool.status();
    assert_eq!((status.in_use, status.waiting), (0, 0), "{status:?}");
    assert!(backend.peak() <= max_size, "more lived than may");
}
