//! Permits: a place in the pool that is reserved now, for a resource later.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::time::Duration;

use crate::error::AcquireError;
use crate::ledger::Ask;
use crate::manager::Manager;
use crate::pool::Pool;
use crate::shell::acquire::{Acquire, Patience, Reserve, by_ledger};
use crate::shell::carry_out::Place;
use crate::shell::kind::Threads;
use crate::shell::shared::PoolRef;
use crate::shell::waiting::Waiting;

impl<M: Manager + 'static> Pool<M> {
    /// Reserves a place in the pool, within the pool's `acquire_timeout`, without a resource yet.
    ///
    /// The place counts against `max_size` like a lease. So the [`Permit`] gets its resource later
    /// without waiting for another caller. Callers that reserve and callers that acquire wait in
    /// one queue. A service that reserves before it accepts a request gives real back-pressure:
    /// where there is no place, the request stays with the client.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
    /// let permit = pool.reserve().await?;
    /// assert_eq!(pool.status().total, 0, "nothing was opened");
    /// assert!(pool.try_acquire()?.is_none(), "the only place is reserved");
    ///
    /// let lease = permit.acquire().await?;
    /// assert_eq!((pool.status().reserved, pool.status().in_use), (0, 1));
    /// # drop(lease);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future gives up its place in the queue. A place that was already granted to it
    /// goes to the next waiter.
    #[track_caller]
    pub fn reserve(
        &self,
    ) -> impl Future<Output = Result<Permit<M>, AcquireError<M::Error>>> + Send {
        self.reserve_as(Location::caller(), Patience::Usual)
    }

    /// As [`reserve`](Pool::reserve), within `limit` in place of the pool's `acquire_timeout`.
    /// `None`: for ever.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
    /// # use std::time::Duration;
    /// let _permit = pool.reserve_within(None).await?;
    /// assert!(pool.reserve_within(Duration::from_millis(5)).await.is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`reserve`](Pool::reserve).
    #[track_caller]
    pub fn reserve_within(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> impl Future<Output = Result<Permit<M>, AcquireError<M::Error>>> + Send {
        self.reserve_as(Location::caller(), Patience::For(limit.into()))
    }

    /// Reserves a place if there is one now, without waiting.
    ///
    /// ```
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
    /// let permit = pool.try_reserve()?;
    /// assert!(permit.is_some());
    /// assert!(pool.try_reserve()?.is_none());
    /// drop(permit);
    /// assert!(pool.try_reserve()?.is_some());
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn try_reserve(&self) -> Result<Option<Permit<M>>, AcquireError<M::Error>> {
        let waiting = Waiting::new(&self.shared, Location::caller(), Patience::Usual);
        let outcome = waiting.asking(Ask::Place).try_now();
        let reserved = outcome.map(|outcome| outcome.reserved(&self.shared));
        reserved.transpose()
    }

    fn reserve_as(
        &self,
        site: &'static Location<'static>,
        patience: Patience,
    ) -> impl Future<Output = Reserve<M>> + Send {
        let mut waiting = Waiting::new(&self.shared, site, patience).asking(Ask::Place);
        poll_fn(move |context| {
            let outcome = by_ledger(&mut waiting, context);
            outcome.map(|outcome| outcome.reserved(waiting.shared))
        })
    }
}

/// A reserved place in a pool, from [`Pool::reserve`]. Dropping it gives the place up.
///
/// A permit does not keep its pool open.
#[must_use = "a permit that is not kept gives its place up at once"]
pub struct Permit<M: Manager + 'static> {
    shared: PoolRef<Threads<M>>,
    spent: bool,
}

impl<M: Manager + 'static> Permit<M> {
    pub(crate) fn new(shared: &PoolRef<Threads<M>>) -> Self {
        Self {
            shared: shared.clone(),
            spent: false,
        }
    }

    /// Exchanges the place for a resource, within the pool's `acquire_timeout`: an idle one, or one
    /// that is opened or comes back. [`Pool::reserve`] has an example.
    ///
    /// It comes before all callers that wait without a place. It fails as any acquire does if the
    /// open fails, or if the pool was closed or its breaker has tripped meanwhile.
    ///
    /// # Cancel safety
    /// Dropping this future gives the place up. A resource that was already granted to it goes to
    /// the next waiter.
    #[track_caller]
    pub fn acquire(self) -> impl Future<Output = Acquire<M>> + Send {
        self.acquire_as(Location::caller(), Patience::Usual)
    }

    /// As [`acquire`](Permit::acquire), within `limit` in place of the pool's `acquire_timeout`.
    /// `None`: for ever.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// let open = async || {
    ///     tokio::time::sleep(Duration::from_secs(1)).await;
    ///     Ok::<_, &str>(())
    /// };
    /// let pool = cenote::Pool::from_fn(open).build()?;
    /// let permit = pool.reserve().await?;
    /// assert!(permit.acquire_within(Duration::from_millis(5)).await.is_err(), "the open is slow");
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`acquire`](Permit::acquire).
    #[track_caller]
    pub fn acquire_within(
        self,
        limit: impl Into<Option<Duration>>,
    ) -> impl Future<Output = Acquire<M>> + Send {
        self.acquire_as(Location::caller(), Patience::For(limit.into()))
    }

    async fn acquire_as(
        mut self,
        site: &'static Location<'static>,
        patience: Patience,
    ) -> Acquire<M> {
        let shared = self.shared.clone();
        let mut waiting = Waiting::new(&shared, site, patience).asking(Ask::WithPlace);
        let outcome = poll_fn(|context| {
            // The first poll spends the place, whatever comes of it.
            self.spent = true;
            by_ledger(&mut waiting, context)
        });
        outcome.await.acquired()
    }
}

impl<M: Manager + 'static> Drop for Permit<M> {
    fn drop(&mut self) {
        if !self.spent {
            self.shared.order(Place::Drop, |ledger, now, orders| {
                ledger.unreserve(now, orders);
            });
        }
    }
}

impl<M: Manager + 'static> fmt::Debug for Permit<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("pool", &self.shared.name)
            .finish_non_exhaustive()
    }
}
