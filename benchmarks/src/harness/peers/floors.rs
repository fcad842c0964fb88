//! The floors: the bare parts that a pool is made of. They do not check, count, or know the
//! holders.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_queue::ArrayQueue;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::harness::backend::{Backend, Thing};
use crate::harness::peer::{Kind, Peer, Setup};

/// Keeps the idle things of a floor.
pub(super) trait Shelf: fmt::Debug + Send + Sync + 'static {
    /// Gives a thing back.
    fn put(&self, thing: Thing);
}

/// A thing that was taken from a shelf.
#[derive(Debug)]
pub(super) struct Taken<'a, S: Shelf> {
    shelf: &'a S,
    thing: Option<Thing>,
}

impl<'a, S: Shelf> Taken<'a, S> {
    fn new(shelf: &'a S, thing: Option<Thing>) -> Self {
        assert!(thing.is_some(), "a floor never runs dry");
        Self { shelf, thing }
    }
}

impl<S: Shelf> Drop for Taken<'_, S> {
    fn drop(&mut self) {
        if let Some(thing) = self.thing.take() {
            self.shelf.put(thing);
        }
    }
}

fn lock<T>(shelf: &Mutex<T>) -> MutexGuard<'_, T> {
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn things(setup: &Setup) -> Vec<Thing> {
    let mut things = Vec::with_capacity(setup.size);
    for _ in 0..setup.size {
        things.push(setup.backend.connect().await);
    }
    things
}

/// A queue behind a lock. A trip pops and pushes.
#[derive(Clone, Debug)]
pub(super) struct Locked(Arc<Mutex<VecDeque<Thing>>>);

impl Shelf for Mutex<VecDeque<Thing>> {
    fn put(&self, thing: Thing) {
        lock(self).push_back(thing);
    }
}

impl Peer for Locked {
    const NAME: &'static str = "floor: Mutex<VecDeque>";
    const KIND: Kind = Kind::Floor;
    type Guard<'a> = Taken<'a, Mutex<VecDeque<Thing>>>;

    async fn build(setup: &Setup) -> Self {
        Self(Arc::new(Mutex::new(things(setup).await.into())))
    }

    async fn acquire(&self) -> Self::Guard<'_> {
        Taken::new(&*self.0, lock(&self.0).pop_front())
    }
}

/// A lock-free queue.
#[derive(Clone, Debug)]
pub(super) struct LockFree(Arc<ArrayQueue<Thing>>);

impl Shelf for ArrayQueue<Thing> {
    fn put(&self, thing: Thing) {
        // The queue has room for all things.
        let _ = self.push(thing);
    }
}

impl Peer for LockFree {
    const NAME: &'static str = "floor: ArrayQueue";
    const KIND: Kind = Kind::Floor;
    type Guard<'a> = Taken<'a, ArrayQueue<Thing>>;

    async fn build(setup: &Setup) -> Self {
        let queue = ArrayQueue::new(setup.size);
        for thing in things(setup).await {
            queue.put(thing);
        }
        Self(Arc::new(queue))
    }

    async fn acquire(&self) -> Self::Guard<'_> {
        Taken::new(&*self.0, self.0.pop())
    }
}

/// A shelf for each thread, so that no cache line is shared. It opens another thing if a thread has
/// none, so it has no size limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct PerThread;

thread_local! {
    static OWN: RefCell<Vec<Thing>> = const { RefCell::new(Vec::new()) };
}

impl Shelf for PerThread {
    fn put(&self, thing: Thing) {
        OWN.with_borrow_mut(|own| own.push(thing));
    }
}

impl Peer for PerThread {
    const NAME: &'static str = "floor: thread-local Vec";
    const KIND: Kind = Kind::Floor;
    type Guard<'a> = Taken<'a, Self>;

    async fn build(_: &Setup) -> Self {
        Self
    }

    async fn acquire(&self) -> Self::Guard<'_> {
        let thing = match OWN.with_borrow_mut(Vec::pop) {
            Some(thing) => thing,
            None => Backend::default().connect().await,
        };
        Taken::new(self, Some(thing))
    }
}

/// A semaphore for the waiters, and a stack behind a lock for the idle things.
#[derive(Clone, Debug)]
pub(super) struct Permits(Arc<(Semaphore, Mutex<Vec<Thing>>)>);

impl Shelf for Mutex<Vec<Thing>> {
    fn put(&self, thing: Thing) {
        lock(self).push(thing);
    }
}

/// Gives the thing back before the permit.
#[derive(Debug)]
pub(super) struct Permitted<'a> {
    _taken: Taken<'a, Mutex<Vec<Thing>>>,
    _permit: SemaphorePermit<'a>,
}

impl Peer for Permits {
    const NAME: &'static str = "floor: semaphore + Vec";
    const KIND: Kind = Kind::WaitingFloor;
    type Guard<'a> = Permitted<'a>;

    async fn build(setup: &Setup) -> Self {
        let things = Mutex::new(things(setup).await);
        Self(Arc::new((Semaphore::new(setup.size), things)))
    }

    async fn acquire(&self) -> Permitted<'_> {
        let (semaphore, shelf) = &*self.0;
        let permit = semaphore.acquire().await.expect("it is never closed");
        Permitted {
            _taken: Taken::new(shelf, lock(shelf).pop()),
            _permit: permit,
        }
    }
}

/// A channel with all things in it.
#[derive(Clone, Debug)]
pub(super) struct Channel(flume::Sender<Thing>, flume::Receiver<Thing>);

impl Shelf for flume::Sender<Thing> {
    fn put(&self, thing: Thing) {
        // The receiver lives as long as the pool.
        let _ = self.try_send(thing);
    }
}

impl Peer for Channel {
    const NAME: &'static str = "floor: flume";
    const KIND: Kind = Kind::WaitingFloor;
    type Guard<'a> = Taken<'a, flume::Sender<Thing>>;

    async fn build(setup: &Setup) -> Self {
        let (sender, receiver) = flume::bounded(setup.size);
        for thing in things(setup).await {
            sender.put(thing);
        }
        Self(sender, receiver)
    }

    async fn acquire(&self) -> Self::Guard<'_> {
        let thing = self.1.recv_async().await.expect("the sender lives");
        Taken::new(&self.0, Some(thing))
    }
}
