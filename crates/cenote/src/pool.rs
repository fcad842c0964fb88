//! The pool: the ways to acquire, warm-up, and handles.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::builder::Builder;
use crate::error::{AcquireError, WarmError};
use crate::lease::Lease;
use crate::ledger::Ask;
use crate::manager::Manager;
use crate::shell::acquire::{self, Acquire, Patience};
use crate::shell::carry_out::Place;
use crate::shell::kind::{Kind, Threads};
use crate::shell::shared::{PoolRef, Shared};
use crate::shell::waiting::Waiting;
use crate::time::Moment;

/// A pool of resources. It is a cheap handle: clone it and share it.
///
/// Acquire a [`Lease`], use it, drop it. At most `max_size` resources exist at once, waiters are
/// served in order, and no resource is lent that is broken, dirty or too old. The pool closes when
/// the last handle is dropped. Leases stay valid; their resources are closed when they come back.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::Pool;
///
/// let pool = Pool::from_fn(async || Ok::<_, &str>(String::new())).max_size(4).build()?;
/// let mut lease = pool.acquire().await?;
/// lease.push_str("used");
/// drop(lease);
/// assert_eq!(*pool.clone().acquire().await?, "used", "it was lent again");
/// # Ok(()) }
/// ```
pub struct Pool<M: Manager + 'static> {
    pub(crate) shared: PoolRef<Threads<M>>,
}

impl<M: Manager + 'static> Pool<M> {
    /// Begins to build a pool of the resources that `manager` opens. See [`Manager`] for an
    /// example, and [`Pool::from_fn`] for a pool without a manager.
    pub fn builder(manager: M) -> Builder<M> {
        Builder::new(manager)
    }

    /// Lends a resource, within the pool's `acquire_timeout`.
    ///
    /// The caller gets an idle resource, or the first one that is opened or comes back. Callers are
    /// served in the order of their arrival. The line of code that calls this is remembered: the
    /// errors of acquires that time out meanwhile name it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(String::new())).build()?;
    /// let mut text = pool.acquire().await?;
    /// text.push('x');
    /// assert_eq!(pool.leases()[0].site.line(), cenote::Lease::site(&text).line());
    /// # Ok(()) }
    /// ```
    ///
    /// A helper that has `#[track_caller]` and returns the future passes on the line of its own
    /// caller. On an `async fn` the attribute does nothing.
    ///
    /// ```
    /// # use cenote::{AcquireError, Lease, Manager, Pool};
    /// #[track_caller]
    /// fn session<M: Manager>(
    ///     pool: &Pool<M>,
    /// ) -> impl Future<Output = Result<Lease<M>, AcquireError<M::Error>>> {
    ///     pool.acquire()
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let (lease, line) = (session(&pool).await?, line!());
    /// assert_eq!(Lease::site(&lease).line(), line);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future gives up its place in the queue. A resource that was already granted to
    /// it goes to the next waiter. An open that was begun for it goes on.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Acquire<M>> + Send {
        Waiting::new(&self.shared, Location::caller(), Patience::Usual)
    }

    /// Lends a resource within `limit`, in place of the pool's `acquire_timeout`. `None`: for ever.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
    /// use std::time::Duration;
    /// use cenote::AcquireError;
    ///
    /// let _held = pool.acquire().await?;
    /// let late = pool.acquire_within(Duration::from_millis(5)).await;
    /// assert!(matches!(late, Err(AcquireError::TimedOut(_))));
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`acquire`](Pool::acquire).
    #[track_caller]
    pub fn acquire_within(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> impl Future<Output = Acquire<M>> + Send {
        let patience = Patience::For(limit.into());
        Waiting::new(&self.shared, Location::caller(), patience)
    }

    /// Lends a resource before `deadline`, in place of the pool's `acquire_timeout`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use std::time::{Duration, Instant};
    ///
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(pool.acquire_by(deadline).await.is_ok());
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`acquire`](Pool::acquire).
    #[track_caller]
    pub fn acquire_by(&self, deadline: Instant) -> impl Future<Output = Acquire<M>> + Send {
        let patience = Patience::Until(Moment::of(deadline));
        Waiting::new(&self.shared, Location::caller(), patience)
    }

    /// As [`acquire`](Pool::acquire), for a caller at `site`, and before `deadline`. `None`: within
    /// the pool's `acquire_timeout`. [`bind_at`](Pool::bind_at) is the same in a scope.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let site = std::panic::Location::caller();
    /// let _lease = pool.acquire_at(site, pool.deadline()).await?;
    /// assert_eq!(pool.leases()[0].site, site);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`acquire`](Pool::acquire).
    pub fn acquire_at(
        &self,
        site: &'static Location<'static>,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Acquire<M>> + Send {
        let deadline = deadline.map(Moment::of);
        let patience = deadline.map_or(Patience::Usual, Patience::Until);
        Waiting::new(&self.shared, site, patience)
    }

    /// Lends a resource that is idle and fit now. Returns `None` if there is none, or if callers
    /// already wait.
    ///
    /// It never waits. If an idle resource must be checked first, or if nothing is idle and there
    /// is room, the check or an open is begun in the background, and a later try can have the
    /// resource. [`try_acquire_or_open`](Pool::try_acquire_or_open) waits for that.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// assert!(pool.try_acquire()?.is_none(), "nothing was opened yet");
    /// tokio::task::yield_now().await;
    /// assert!(pool.try_acquire()?.is_some(), "the first try began an open");
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Option<Lease<M>>, AcquireError<M::Error>> {
        self.try_acquire_at(Location::caller())
    }

    /// As [`try_acquire`](Pool::try_acquire), for a caller at `site`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// pool.warm().await?;
    /// let site = std::panic::Location::caller();
    /// let _lease = pool.try_acquire_at(site)?.unwrap();
    /// assert_eq!(pool.leases()[0].site, site);
    /// # Ok(()) }
    /// ```
    pub fn try_acquire_at(
        &self,
        site: &'static Location<'static>,
    ) -> Result<Option<Lease<M>>, AcquireError<M::Error>> {
        acquire::try_acquire(&self.shared, site)
    }

    /// Lends a resource that is idle, or the one that can be opened now because there is room.
    /// Returns `None` at once if all resources are in use, or if callers already wait for them.
    ///
    /// It waits for an open or a check, within the pool's `acquire_timeout`, and never for a
    /// return. If a resource comes back meanwhile, it takes that one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
    /// let only = pool.try_acquire_or_open().await?;
    /// assert!(only.is_some(), "it was opened");
    /// assert!(pool.try_acquire_or_open().await?.is_none(), "all are in use");
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`acquire`](Pool::acquire).
    #[track_caller]
    pub fn try_acquire_or_open(
        &self,
    ) -> impl Future<Output = Result<Option<Lease<M>>, AcquireError<M::Error>>> + Send {
        let waiting = Waiting::new(&self.shared, Location::caller(), Patience::Usual);
        acquire::or_none(waiting.asking(Ask::Unqueued))
    }

    /// Lends a resource to a thread, within the pool's `acquire_timeout`. It blocks the thread; in
    /// a task use [`acquire`](Pool::acquire).
    ///
    /// It works without a runtime. Opens and checks then run on a [thread](crate::threads) of this
    /// library. In a task of a runtime with one thread it fails with `BlockingInRuntime`, unless a
    /// resource is idle.
    ///
    /// ```
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(7)).build()?;
    /// assert_eq!(*pool.acquire_blocking()?, 7); // no runtime anywhere
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn acquire_blocking(&self) -> Result<Lease<M>, AcquireError<M::Error>> {
        acquire::acquire_blocking(&self.shared, Location::caller(), Patience::Usual)
    }

    /// As [`acquire_blocking`](Pool::acquire_blocking), within `limit`. `None`: for ever.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(7)).max_size(1).build()?;
    /// let _held = pool.acquire_blocking_within(None)?;
    /// assert!(pool.acquire_blocking_within(Duration::from_millis(5)).is_err());
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn acquire_blocking_within(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> Result<Lease<M>, AcquireError<M::Error>> {
        let patience = Patience::For(limit.into());
        acquire::acquire_blocking(&self.shared, Location::caller(), patience)
    }

    /// Opens resources until there are `max(min_size, min_idle, 1)`, and fails if that fails,
    /// unless `warm_up` is `BestEffort`. A pool that was warmed up has reached its backend.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).min_size(3).build()?;
    /// assert_eq!(pool.status().total, 0, "building opens nothing");
    /// pool.warm().await?;
    /// assert_eq!(pool.status().idle, 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future only stops the waiting. Opens that were begun go on.
    pub async fn warm(&self) -> Result<(), WarmError<M::Error>> {
        self.shared.warm().await
    }

    /// Returns another handle, if there is still one.
    pub(crate) fn of(shared: PoolRef<Threads<M>>) -> Option<Self> {
        let one_more = |handles: usize| (handles > 0).then_some(handles + 1);
        let handles = &shared.handles;
        let added = handles.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_more);
        added.is_ok().then(|| Self { shared })
    }

    /// Returns a handle that does not keep the pool open. See [`WeakPool`] for an example.
    pub fn downgrade(&self) -> WeakPool<M> {
        WeakPool {
            shared: Threads::downgrade(&self.shared),
        }
    }
}

impl<M: Manager + 'static> Clone for Pool<M> {
    fn clone(&self) -> Self {
        self.shared.handles.fetch_add(1, Ordering::Relaxed);
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<M: Manager + 'static> Drop for Pool<M> {
    fn drop(&mut self) {
        if self.shared.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.close_in(Place::Drop);
        }
    }
}

impl<M: Manager + 'static> fmt::Debug for Pool<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("name", &self.name())
            .field("status", &self.status())
            .finish()
    }
}

/// A handle to a pool that does not keep it open, made by [`Pool::downgrade`].
///
/// ```
/// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
/// let weak = pool.downgrade();
/// assert_eq!(weak.upgrade().unwrap().name(), pool.name());
/// drop(pool);
/// assert!(weak.upgrade().is_none());
/// # Ok::<_, cenote::ConfigError>(())
/// ```
pub struct WeakPool<M: Manager + 'static> {
    shared: Weak<Shared<Threads<M>>>,
}

impl<M: Manager + 'static> WeakPool<M> {
    /// Returns the pool, if there is still a handle to it.
    pub fn upgrade(&self) -> Option<Pool<M>> {
        Pool::of(Threads::upgrade(&self.shared)?)
    }
}

impl<M: Manager + 'static> Clone for WeakPool<M> {
    fn clone(&self) -> Self {
        Self {
            shared: Weak::clone(&self.shared),
        }
    }
}

impl<M: Manager + 'static> fmt::Debug for WeakPool<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakPool").finish_non_exhaustive()
    }
}
