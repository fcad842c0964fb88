//! The pool: the door to everything.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::acquire::{self, Acquire, Patience};
use crate::builder::Builder;
use crate::config::WarmUp;
use crate::error::{AcquireError, WarmError};
use crate::lease::Lease;
use crate::ledger::Cold;
use crate::manager::Manager;
use crate::moment::Moment;
use crate::rt;
use crate::shared::{Place, Shared};
use crate::upkeep;
use crate::watcher::Watcher;

/// A pool of resources: a cheap handle, to be cloned and shared.
///
/// Acquire, hold the [`Lease`], drop it. At most `max_size` resources exist at once, those who wait are served in order, and nothing
/// broken, dirty or stale is handed out. When the last handle is dropped the pool closes; leases that are still out are closed as
/// they come home.
pub struct Pool<M: Manager + 'static> {
    pub(crate) shared: Arc<Shared<M>>,
}

impl<M: Manager + 'static> Pool<M> {
    /// Begins to build a pool of what `manager` makes.
    pub fn builder(manager: M) -> Builder<M> {
        Builder::new(manager)
    }

    /// Lends a resource, within the pool's `acquire_timeout`.
    ///
    /// The caller is served by an idle resource, or by the one that is opened or comes back first, in the order of arrival. The line of code
    /// that calls this is remembered, and named in the errors of callers that time out meanwhile.
    ///
    /// A helper passes its caller's line on if it is a plain function that returns the future. In an `async fn` the attribute does nothing.
    ///
    /// ```
    /// # use cenote::{AcquireError, ClosureError, Lease, Manager, Pool};
    /// #[track_caller]
    /// fn session<M: Manager>(
    ///     pool: &Pool<M>,
    /// ) -> impl Future<Output = Result<Lease<M>, AcquireError<M::Error>>> {
    ///     pool.acquire()
    /// }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).build()?;
    ///
    /// let (lease, line) = (session(&pool).await?, line!());
    /// assert_eq!(Lease::site(&lease).line(), line);
    /// # Ok(()) }
    /// ```
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// let mut text = pool.acquire().await?;
    /// text.push('x');
    /// assert_eq!(pool.leases()[0].site.line(), cenote::Lease::site(&text).line());
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future gives the place in line back. What was already granted goes to the next waiter; what is being opened is
    /// opened all the same.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Acquire<M>> + Send {
        acquire::acquire(&self.shared, Location::caller(), Patience::Usual)
    }

    /// Lends a resource within `limit`, whatever the pool's `acquire_timeout` says. `None`: for ever.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(1).build()?;
    /// use std::time::Duration;
    /// use cenote::AcquireError;
    ///
    /// let _held = pool.acquire().await?;
    /// let late = pool.acquire_timeout(Duration::from_millis(5)).await;
    /// assert!(matches!(late, Err(AcquireError::TimedOut(_))));
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`acquire`](Pool::acquire).
    #[track_caller]
    pub fn acquire_timeout(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> impl Future<Output = Acquire<M>> + Send {
        acquire::acquire(
            &self.shared,
            Location::caller(),
            Patience::For(limit.into()),
        )
    }

    /// Lends a resource before `deadline`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// use std::time::{Duration, Instant};
    ///
    /// let deadline = Instant::now() + Duration::from_millis(50);
    /// assert!(pool.acquire_until(deadline).await.is_ok());
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`acquire`](Pool::acquire).
    #[track_caller]
    pub fn acquire_until(&self, deadline: Instant) -> impl Future<Output = Acquire<M>> + Send {
        acquire::acquire(
            &self.shared,
            Location::caller(),
            Patience::Until(Moment::of(deadline)),
        )
    }

    /// Lends a resource that is idle and fit now; `None` if there is none, or if somebody waits for it.
    ///
    /// Never waits, and so never opens or checks. An idle resource that must be checked first is checked in the background, so that a later
    /// try can have it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// assert!(pool.try_acquire()?.is_none(), "nothing is idle yet");
    /// drop(pool.acquire().await?);
    /// assert!(pool.try_acquire()?.is_some());
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Option<Lease<M>>, AcquireError<M::Error>> {
        acquire::try_acquire(&self.shared, Location::caller())
    }

    /// Lends a resource to a thread, within the pool's `acquire_timeout`. Works without a runtime: then what must be awaited runs on a thread
    /// of this library.
    ///
    /// It blocks the thread. In a task use [`acquire`](Pool::acquire).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(7)).build()?;
    /// assert_eq!(*pool.acquire_blocking()?, 7); // no runtime anywhere
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn acquire_blocking(&self) -> Result<Lease<M>, AcquireError<M::Error>> {
        acquire::acquire_blocking(&self.shared, Location::caller(), Patience::Usual)
    }

    /// As [`acquire_blocking`](Pool::acquire_blocking), within `limit`. `None`: for ever.
    #[track_caller]
    pub fn acquire_blocking_timeout(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> Result<Lease<M>, AcquireError<M::Error>> {
        acquire::acquire_blocking(
            &self.shared,
            Location::caller(),
            Patience::For(limit.into()),
        )
    }

    /// Lends a resource for the time of a closure.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(vec![1, 2, 3])).build()?;
    /// let sum = pool.with(async |numbers| numbers.iter().sum::<i32>()).await?;
    /// assert_eq!(sum, 6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future drops the closure's, and then returns the resource.
    #[track_caller]
    pub fn with<T>(
        &self,
        scope: impl AsyncFnOnce(&mut M::Resource) -> T,
    ) -> impl Future<Output = Result<T, AcquireError<M::Error>>> {
        let acquiring = self.acquire();
        async move {
            let mut lease = acquiring.await?;
            Ok(scope(&mut lease).await)
        }
    }

    /// Opens resources until there are `max(min_size, min_idle, 1)`, and fails if it cannot, unless `warm_up` is `BestEffort`. So a pool that
    /// was warmed up has reached its backend.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).min_size(3).build()?;
    /// assert_eq!(pool.status().total, 0, "building opens nothing");
    /// pool.warm().await?;
    /// assert_eq!(pool.status().idle, 3);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// What is being opened is opened all the same.
    pub async fn warm(&self) -> Result<(), WarmError<M::Error>> {
        upkeep::start(&self.shared);
        let failed = self.status().open_failed;
        let mut watcher = Watcher::new(&self.shared);
        let warmed = poll_fn(|context| {
            watcher.watch(context);
            let (answer, mut orders) = self.shared.ledger_off_trays().warm(failed, rt::now());
            self.shared.carry_out(&mut orders, Place::Task);
            answer
        })
        .await;
        match warmed {
            Ok(()) => Ok(()),
            Err(Cold::Closed) => Err(WarmError::Closed),
            Err(Cold::Failed(_)) if self.shared.limits.warm_up == WarmUp::BestEffort => Ok(()),
            Err(Cold::Failed(error)) => Err(WarmError::Open(error)),
        }
    }

    /// A handle that does not keep the pool open.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// let weak = pool.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(pool);
    /// assert!(weak.upgrade().is_none());
    /// # Ok(()) }
    /// ```
    pub fn downgrade(&self) -> WeakPool<M> {
        WeakPool {
            shared: Arc::downgrade(&self.shared),
        }
    }
}

impl<M: Manager + 'static> Clone for Pool<M> {
    fn clone(&self) -> Self {
        self.shared.handles.fetch_add(1, Ordering::Relaxed);
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<M: Manager + 'static> Drop for Pool<M> {
    fn drop(&mut self) {
        if self.shared.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.close(Place::Drop);
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

/// A handle to a pool that does not keep it open.
pub struct WeakPool<M: Manager + 'static> {
    shared: Weak<Shared<M>>,
}

impl<M: Manager + 'static> WeakPool<M> {
    /// The pool, if a handle to it is left.
    pub fn upgrade(&self) -> Option<Pool<M>> {
        let shared = self.shared.upgrade()?;
        let one_more = |handles| {
            if handles == 0 {
                None
            } else {
                Some(handles + 1)
            }
        };
        shared
            .handles
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_more)
            .ok()?;
        Some(Pool { shared })
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
