//! The pool: the door to everything.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::acquire::{self, Acquire, Patience};
use crate::breaker::BreakerState;
use crate::builder::Builder;
use crate::config::{ConfigError, WarmUp};
use crate::error::{AcquireError, WarmError};
use crate::lease::Lease;
use crate::ledger::{Cold, Orders, Outcome};
use crate::manager::Manager;
use crate::observer::Resized;
use crate::rt;
use crate::shared::{Book, Place, Shared};
use crate::status::{Health, Holder, Leftover, Reason, Status};
use crate::upkeep;

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
    /// Served from what is idle, or by what is opened or comes back first, in the order of arrival. The place in the code that calls this
    /// is remembered, and named by whoever runs out of time meanwhile.
    ///
    /// # Cancel safety
    /// Dropping this future gives the place in line back. What was already granted goes to the next waiter; what is being opened is
    /// opened all the same.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Acquire<M>> + Send {
        let limit = self.shared.limits.acquire_timeout;
        acquire::acquire(&self.shared, Location::caller(), Patience::For(limit))
    }

    /// Lends a resource within `limit`, whatever the pool's `acquire_timeout` says. `None`: for ever.
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
    /// # Cancel safety
    /// As [`acquire`](Pool::acquire).
    #[track_caller]
    pub fn acquire_until(&self, deadline: Instant) -> impl Future<Output = Acquire<M>> + Send {
        acquire::acquire(&self.shared, Location::caller(), Patience::Until(deadline))
    }

    /// Lends a resource that is idle and fit now; `None` if there is none, or if somebody waits for it.
    ///
    /// Never waits, and so never opens or checks. An idle resource that must be checked first is checked in the background, so that a later
    /// try can have it.
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Option<Lease<M>>, AcquireError<M::Error>> {
        acquire::try_acquire(&self.shared, Location::caller())
    }

    /// Lends a resource to a thread, within the pool's `acquire_timeout`. Works without a runtime: then what must be awaited runs on a thread
    /// of this library.
    ///
    /// It blocks the thread. In a task use [`acquire`](Pool::acquire).
    #[track_caller]
    pub fn acquire_blocking(&self) -> Result<Lease<M>, AcquireError<M::Error>> {
        let limit = self.shared.limits.acquire_timeout;
        acquire::acquire_blocking(&self.shared, Location::caller(), Patience::For(limit))
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

    /// Opens resources until there are `min_size`. Fails with the first open that does, unless `warm_up` is `BestEffort`.
    ///
    /// # Cancel safety
    /// What is being opened is opened all the same.
    pub async fn warm(&self) -> Result<(), WarmError<M::Error>> {
        upkeep::start(&self.shared);
        let failed = self.status().open_failed;
        let warmed = poll_fn(|context| {
            let now = rt::now();
            let (answer, orders) = {
                let mut book = self.shared.lock();
                book.watch(context.waker());
                book.warm(failed, now)
            };
            self.shared.carry_out(orders, Place::Task);
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

    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The manager.
    pub fn manager(&self) -> &M {
        &self.shared.manager
    }

    /// One consistent snapshot.
    pub fn status(&self) -> Status {
        self.shared.lock().status(rt::now())
    }

    /// Busy, stuck, or down? Acquires nothing: what a readiness probe should ask.
    pub fn health(&self) -> Health {
        self.shared.lock().health(rt::now())
    }

    /// Who holds what, the longest first.
    pub fn leases(&self) -> Vec<Holder> {
        self.shared.lock().holders(rt::now())
    }

    /// Changes `max_size`. Grows at once; shrinks by what is idle, and by the rest as leases come home.
    pub fn resize(&self, max_size: usize) -> Result<(), ConfigError> {
        self.shared.limits.check_resize(max_size)?;
        let from = self.order(|book| book.resize(max_size, rt::now()));
        let event = Resized {
            pool: self.name(),
            from,
            to: max_size,
        };
        self.shared
            .observers
            .tell(|observer| observer.resized(&event));
        Ok(())
    }

    /// Retires everything that is open now: what is idle is closed at once, the rest when it comes home. For failover and rotated secrets.
    pub fn invalidate(&self) {
        self.invalidate_over(Duration::ZERO);
    }

    /// As [`invalidate`](Pool::invalidate), spread evenly over `over`, so that the backend is not stormed.
    pub fn invalidate_over(&self, over: Duration) {
        self.order(|book| ((), book.invalidate(over, rt::now())));
    }

    /// Closes the idle resources that `keep` says no to. Each is in nobody's hands while `keep` looks at it. If `keep` panics, nothing is
    /// closed for it, and the panic goes on.
    pub fn retain(&self, mut keep: impl FnMut(&mut M::Resource) -> bool) {
        let idle = self.shared.lock().idle();
        for (slot, id) in idle {
            let looked_at = self.shared.lock().look_at(slot, id, rt::now());
            let Some(mut resource) = looked_at else {
                continue;
            };
            let kept = catch_unwind(AssertUnwindSafe(|| keep(&mut resource)));
            self.order(|book| match kept {
                Ok(false) => (
                    (),
                    book.judged(slot, resource, Outcome::Unfit(Reason::Refused), rt::now()),
                ),
                Ok(true) | Err(_) => ((), book.put_back(slot, resource, rt::now())),
            });
            if let Err(panic) = kept {
                resume_unwind(panic);
            }
        }
    }

    /// Lends nothing until [`resume`](Pool::resume): acquires wait, and their deadlines run. Leases go on.
    pub fn suspend(&self) {
        self.shared.lock().suspend();
    }

    /// Lends again.
    pub fn resume(&self) {
        self.order(|book| ((), book.resume(rt::now())));
    }

    /// Stops the upkeep (eviction, lifetime, heartbeat, refill, leak reports) without closing.
    pub fn pause_upkeep(&self) {
        self.shared.lock().pause();
    }

    /// Goes on with the upkeep.
    pub fn resume_upkeep(&self) {
        self.order(|book| ((), book.unpause(rt::now())));
    }

    /// Whether the pool lends.
    pub fn breaker_state(&self) -> BreakerState {
        self.shared.lock().breaker().state
    }

    /// Makes the breaker active by hand: the pool lends.
    pub fn activate(&self) {
        self.shared
            .set_breaker(None, BreakerState::Active, Place::here());
    }

    /// Makes the breaker inactive by hand: every acquire, and everybody who waits, is told `Unavailable` at once.
    pub fn deactivate(&self) {
        self.shared
            .set_breaker(None, BreakerState::Inactive, Place::here());
    }

    /// Lets the breaker recover by hand: at most `probes` resources are out at once until the strategy decides.
    pub fn recover(&self) {
        self.shared
            .set_breaker(None, BreakerState::Recovering, Place::here());
    }

    /// Closes the pool for good. New acquires and everybody who waits are told `Closed` at once, what is idle is closed, and leases are closed
    /// as they come home. Closing twice is closing once.
    pub fn close(&self) {
        self.shared.close(Place::here());
    }

    /// As [`close`](Pool::close), and waits up to `limit` until everything has come home and is closed. Answers with what was left then:
    /// nothing, if all went well.
    ///
    /// # Cancel safety
    /// The pool is closed by the first poll. Dropping this future only stops the waiting.
    pub async fn close_within(&self, limit: Duration) -> Leftover {
        upkeep::start(&self.shared);
        self.shared.close(Place::Task);
        let mut timer = pin!(rt::sleep_until(rt::now().checked_add(limit)));
        poll_fn(|context| {
            let now = rt::now();
            let (drained, orders) = {
                let mut book = self.shared.lock();
                book.watch(context.waker());
                (book.is_drained(), book.remind(now))
            };
            self.shared.carry_out(orders, Place::Task);
            if drained {
                Poll::Ready(())
            } else {
                timer.as_mut().poll(context)
            }
        })
        .await;
        let now = rt::now();
        let book = self.shared.lock();
        Leftover {
            leases: book.holders(now),
            unfinished: book.unfinished(),
        }
    }

    /// Was it closed?
    pub fn is_closed(&self) -> bool {
        self.shared.lock().is_closed()
    }

    /// A handle that does not keep the pool open.
    pub fn downgrade(&self) -> WeakPool<M> {
        WeakPool {
            shared: Arc::downgrade(&self.shared),
        }
    }

    /// One call to the ledger, and its orders carried out.
    fn order<T>(&self, call: impl FnOnce(&mut Book<M>) -> (T, Orders)) -> T {
        let (answer, orders) = call(&mut self.shared.lock());
        self.shared.carry_out(orders, Place::here());
        answer
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
