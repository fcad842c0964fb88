//! The pool that belongs to one thread: the ways to acquire, and handles.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::rc::Weak;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::local_builder::LocalBuilder;
use super::local_lease::LocalLease;
use super::one_thread::OneThread;
use crate::error::{AcquireError, WarmError};
use crate::ledger::Ask;
use crate::local_manager::LocalManager;
use crate::shell::acquire::{self, Patience};
use crate::shell::carry_out::Place;
use crate::shell::kind::Kind;
use crate::shell::shared::{PoolRef, Shared};
use crate::shell::waiting::Waiting;
use crate::time::Moment;
use crate::with::Used;

/// A pool of resources that belongs to one thread. It is a cheap handle: clone it.
///
/// It has the methods and the promises of [`Pool`](crate::Pool), whose examples hold here, too. The
/// [module](crate::local) says what differs.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::rc::Rc;
/// use cenote::local::LocalPool;
/// use tokio::task::LocalSet;
///
/// LocalSet::new().run_until(async {
///     let pool = LocalPool::from_fn(async || Ok::<_, &str>(Rc::new(7))).max_size(4).build()?;
///     let lease = pool.acquire().await?;
///     assert_eq!(**lease, 7);
///     drop(lease);
///     assert_eq!(pool.status().idle, 1);
///     Ok(())
/// }).await
/// # }
/// ```
///
/// It cannot be sent to another thread:
///
/// ```compile_fail,E0277
/// fn send(pool: cenote::local::LocalPool<cenote::Closures<u8>>) -> impl Send {
///     pool
/// }
/// ```
pub struct LocalPool<M: LocalManager + 'static> {
    pub(super) shared: PoolRef<OneThread<M>>,
}

/// The result of an acquire.
pub(crate) type LocalAcquire<M> = Result<LocalLease<M>, AcquireError<<M as LocalManager>::Error>>;

impl<M: LocalManager + 'static> LocalPool<M> {
    /// Begins to build a pool of the resources that `manager` opens. See [`LocalManager`] for an
    /// example, and [`LocalPool::from_fn`] for a pool without a manager.
    pub fn builder(manager: M) -> LocalBuilder<M> {
        LocalBuilder::new(manager)
    }

    /// Lends a resource, within the pool's `acquire_timeout`. As
    /// [`Pool::acquire`](crate::Pool::acquire).
    ///
    /// Outside of a `LocalSet` it fails with [`AcquireError::NoLocalSet`], unless a resource lies
    /// ready or the pool has started its tasks before. Tokio says by a panic that there is no set.
    /// The panic is caught, and the panic hook still reports it.
    ///
    /// ```
    /// # use cenote::AcquireError;
    /// # use cenote::local::LocalPool;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = LocalPool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// assert!(matches!(pool.acquire().await, Err(AcquireError::NoLocalSet { .. })));
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future gives up its place in the queue. A resource that was already granted to
    /// it goes to the next waiter. An open that was begun for it goes on.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = LocalAcquire<M>> {
        Waiting::new(&self.shared, Location::caller(), Patience::Usual)
    }

    /// Lends a resource within `limit`. `None`: for ever. As
    /// [`Pool::acquire_within`](crate::Pool::acquire_within).
    ///
    /// # Cancel safety
    /// As [`acquire`](LocalPool::acquire).
    #[track_caller]
    pub fn acquire_within(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> impl Future<Output = LocalAcquire<M>> {
        let patience = Patience::For(limit.into());
        Waiting::new(&self.shared, Location::caller(), patience)
    }

    /// Lends a resource before `deadline`. As [`Pool::acquire_by`](crate::Pool::acquire_by).
    ///
    /// # Cancel safety
    /// As [`acquire`](LocalPool::acquire).
    #[track_caller]
    pub fn acquire_by(&self, deadline: Instant) -> impl Future<Output = LocalAcquire<M>> {
        let patience = Patience::Until(Moment::of(deadline));
        Waiting::new(&self.shared, Location::caller(), patience)
    }

    /// Lends a resource that is idle and fit now. As
    /// [`Pool::try_acquire`](crate::Pool::try_acquire).
    ///
    /// An open or a check that it begins runs in a task of the pool, and the first acquire or
    /// [`warm`](LocalPool::warm) starts these tasks. Before that, a try finds nothing.
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Option<LocalLease<M>>, AcquireError<M::Error>> {
        acquire::try_acquire(&self.shared, Location::caller())
    }

    /// Lends a resource that is idle, or the one that can be opened now because there is room. As
    /// [`Pool::try_acquire_or_open`](crate::Pool::try_acquire_or_open).
    ///
    /// # Cancel safety
    /// As [`acquire`](LocalPool::acquire).
    #[track_caller]
    pub fn try_acquire_or_open(
        &self,
    ) -> impl Future<Output = Result<Option<LocalLease<M>>, AcquireError<M::Error>>> {
        let waiting = Waiting::new(&self.shared, Location::caller(), Patience::Usual);
        acquire::or_none(waiting.asking(Ask::Unqueued))
    }

    /// Opens resources until there are `max(min_size, min_idle, 1)`. As
    /// [`Pool::warm`](crate::Pool::warm).
    ///
    /// # Cancel safety
    /// Dropping this future only stops the waiting. Opens that were begun go on.
    pub async fn warm(&self) -> Result<(), WarmError<M::Error>> {
        self.shared.warm().await
    }

    /// Lends a resource for the time of a closure. As [`Pool::with`](crate::Pool::with).
    ///
    /// # Cancel safety
    /// Dropping this future drops the closure's future, and then returns the resource.
    #[track_caller]
    pub fn with<T>(
        &self,
        closure: impl AsyncFnOnce(&mut M::Resource) -> T,
    ) -> impl Future<Output = Result<T, AcquireError<M::Error>>> {
        let acquiring = self.acquire();
        async move {
            let mut used = Used::new(acquiring.await?, |_: Option<&()>| true);
            let value = closure(used.resource()).await;
            used.end(None);
            Ok(value)
        }
    }

    /// As [`with`](LocalPool::with), for a closure that may fail. As
    /// [`Pool::try_with`](crate::Pool::try_with).
    ///
    /// # Cancel safety
    /// As [`with`](LocalPool::with).
    #[track_caller]
    pub fn try_with<T, E>(
        &self,
        closure: impl AsyncFnOnce(&mut M::Resource) -> Result<T, E>,
    ) -> impl Future<Output = Result<Result<T, E>, AcquireError<M::Error>>> {
        let acquiring = self.acquire();
        async move {
            let mut used = Used::new(acquiring.await?, |_| true);
            let value = closure(used.resource()).await;
            used.end(value.as_ref().err());
            Ok(value)
        }
    }

    /// Returns a handle that does not keep the pool open.
    pub fn downgrade(&self) -> WeakLocalPool<M> {
        WeakLocalPool {
            shared: OneThread::downgrade(&self.shared),
        }
    }
}

impl<M: LocalManager + 'static> Clone for LocalPool<M> {
    fn clone(&self) -> Self {
        self.shared.handles.fetch_add(1, Ordering::Relaxed);
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<M: LocalManager + 'static> Drop for LocalPool<M> {
    fn drop(&mut self) {
        if self.shared.handles.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.shared.close(Place::Drop);
        }
    }
}

impl<M: LocalManager + 'static> fmt::Debug for LocalPool<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalPool")
            .field("name", &self.name())
            .field("status", &self.status())
            .finish()
    }
}

/// A handle to a pool that does not keep it open, made by [`LocalPool::downgrade`].
///
/// ```
/// let pool = cenote::local::LocalPool::from_fn(async || Ok::<_, &str>(())).build()?;
/// let weak = pool.downgrade();
/// assert_eq!(weak.upgrade().unwrap().name(), pool.name());
/// drop(pool);
/// assert!(weak.upgrade().is_none());
/// # Ok::<_, cenote::ConfigError>(())
/// ```
pub struct WeakLocalPool<M: LocalManager + 'static> {
    shared: Weak<Shared<OneThread<M>>>,
}

impl<M: LocalManager + 'static> WeakLocalPool<M> {
    /// Returns the pool, if there is still a handle to it.
    pub fn upgrade(&self) -> Option<LocalPool<M>> {
        let shared = OneThread::upgrade(&self.shared)?;
        if shared.handles.load(Ordering::Relaxed) == 0 {
            return None;
        }
        shared.handles.fetch_add(1, Ordering::Relaxed);
        Some(LocalPool { shared })
    }
}

impl<M: LocalManager + 'static> Clone for WeakLocalPool<M> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<M: LocalManager + 'static> fmt::Debug for WeakLocalPool<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakLocalPool").finish_non_exhaustive()
    }
}
