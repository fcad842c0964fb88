//! Operations on a whole pool that belongs to one thread. [`Pool`](crate::Pool) has the examples.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::local_pool::LocalPool;
use super::one_thread::OneThread;
use crate::breaker::{BreakerState, Strategy};
use crate::config::{Config, ConfigError};
use crate::event::Observer;
use crate::local_manager::LocalManager;
use crate::registry::Living;
use crate::shell::kind::Kind;
use crate::shell::shared::{PoolLedger, PoolOrders};
use crate::shell::watcher::Watcher;
use crate::status::{Advice, Health, Holder, Leftover, SlotView, Status, WaiterView};
use crate::time::Moment;

impl<M: LocalManager + 'static> LocalPool<M> {
    /// Returns the pool's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns the manager.
    pub fn manager(&self) -> &M {
        &self.shared.manager
    }

    /// Returns the settings that are in effect. As [`Pool::config`](crate::Pool::config).
    pub fn config(&self) -> Config {
        Living::config(&*self.shared)
    }

    /// Returns one consistent snapshot of the pool.
    pub fn status(&self) -> Status {
        Living::status(&*self.shared)
    }

    /// Returns whether the pool works, is busy, stuck or down.
    pub fn health(&self) -> Health {
        Living::health(&*self.shared)
    }

    /// Returns every lease that is out, the longest first.
    pub fn leases(&self) -> Vec<Holder> {
        Living::leases(&*self.shared)
    }

    /// Returns the state of every slot. As [`Pool::slots`](crate::Pool::slots).
    pub fn slots(&self) -> Vec<SlotView> {
        Living::slots(&*self.shared)
    }

    /// Returns the first waiters, `limit` at most.
    pub fn waiters(&self, limit: usize) -> Vec<WaiterView> {
        Living::waiters(&*self.shared, limit)
    }

    /// Returns what the numbers of the pool mean. As [`Pool::advice`](crate::Pool::advice).
    pub fn advice(&self) -> Vec<Advice> {
        Living::advice(&*self.shared, None)
    }

    /// Adds an observer to the living pool. As [`Pool::attach`](crate::Pool::attach).
    pub fn attach(&self, observer: Arc<dyn Observer>) {
        Living::attach(&*self.shared, observer);
    }

    /// Removes an observer. Returns whether it was attached.
    pub fn detach(&self, observer: &Arc<dyn Observer>) -> bool {
        Living::detach(&*self.shared, observer)
    }

    /// Changes `max_size`. As [`Pool::resize`](crate::Pool::resize).
    pub fn resize(&self, max_size: usize) -> Result<(), ConfigError> {
        self.shared.resize(max_size)
    }

    /// Retires all resources that are open now.
    pub fn invalidate(&self) {
        self.invalidate_over(Duration::ZERO);
    }

    /// As [`invalidate`](LocalPool::invalidate), spread evenly over `over`.
    pub fn invalidate_over(&self, over: Duration) {
        self.order(|ledger, now, orders| ledger.invalidate(over, now, orders));
    }

    /// Closes the idle resources for which `keep` returns false. As
    /// [`Pool::retain`](crate::Pool::retain).
    pub fn retain(&self, mut keep: impl FnMut(&mut M::Resource) -> bool) {
        self.shared.retain(&mut keep);
    }

    /// Stops lending until [`resume`](LocalPool::resume).
    pub fn suspend(&self) {
        self.order(|ledger, _, _| ledger.suspend());
    }

    /// Lends again after [`suspend`](LocalPool::suspend).
    pub fn resume(&self) {
        self.order(|ledger, now, orders| ledger.resume(now, orders));
    }

    /// Returns whether the pool is suspended.
    pub fn is_suspended(&self) -> bool {
        self.shared.ledger().is_suspended()
    }

    /// Stops the upkeep until [`resume_upkeep`](LocalPool::resume_upkeep).
    pub fn pause_upkeep(&self) {
        self.order(|ledger, _, _| ledger.pause());
    }

    /// Goes on with the upkeep after [`pause_upkeep`](LocalPool::pause_upkeep).
    pub fn resume_upkeep(&self) {
        self.order(|ledger, now, orders| ledger.unpause(now, orders));
    }

    /// Returns the circuit breaker of this pool, to be read or operated by hand.
    ///
    /// ```
    /// use cenote::breaker::BreakerState;
    /// # use cenote::local::LocalPool;
    ///
    /// let pool = LocalPool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// pool.breaker().trip();
    /// assert_eq!(pool.breaker().state(), BreakerState::Inactive);
    /// assert!(pool.try_acquire().is_err());
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    pub fn breaker(&self) -> LocalBreaker<'_, M> {
        LocalBreaker { pool: self }
    }

    /// Closes the pool for good. As [`Pool::close`](crate::Pool::close).
    pub fn close(&self) {
        self.shared.close(OneThread::<M>::here());
    }

    /// As [`close`](LocalPool::close), and waits up to `limit` until all leases have come back and
    /// all resources are closed. As [`Pool::close_within`](crate::Pool::close_within).
    ///
    /// # Cancel safety
    /// The first poll closes the pool. Dropping this future only stops the waiting.
    pub async fn close_within(&self, limit: Duration) -> Leftover {
        self.shared.close_within(limit).await
    }

    /// Returns whether the pool was closed.
    pub fn is_closed(&self) -> bool {
        self.shared.ledger().is_closed()
    }

    /// Cuts the leased resources of a closed pool, where its manager knows how. Returns how many.
    /// As [`Pool::sever`](crate::Pool::sever).
    pub fn sever(&self) -> usize {
        self.shared.sever()
    }

    /// Waits until the status fulfils `condition`. As [`Pool::wait_for`](crate::Pool::wait_for).
    ///
    /// # Cancel safety
    /// Dropping this future only stops the waiting.
    pub async fn wait_for(&self, mut condition: impl FnMut(&Status) -> bool) -> Status {
        let mut watcher = Watcher::of_every_change(&self.shared);
        poll_fn(|context| {
            watcher.watch(context);
            let status = Some(self.status()).filter(|status| condition(status));
            status.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// The wakers of all queued waiters that were not woken since their last poll. For the checks
    /// of this workspace: the waker of every pending acquire is here, or was woken.
    #[cfg(feature = "_sound")]
    #[doc(hidden)]
    pub fn queued_wakers(&self) -> Vec<std::task::Waker> {
        self.shared.ledger().queued_wakers()
    }

    fn order(
        &self,
        call: impl FnOnce(&mut PoolLedger<OneThread<M>>, Moment, &mut PoolOrders<OneThread<M>>),
    ) {
        self.shared.order(OneThread::<M>::here(), call);
    }
}

/// The circuit breaker of a [`LocalPool`]. As [`Breaker`](crate::breaker::Breaker).
pub struct LocalBreaker<'a, M: LocalManager + 'static> {
    pool: &'a LocalPool<M>,
}

impl<M: LocalManager + 'static> LocalBreaker<'_, M> {
    /// Returns its state.
    pub fn state(&self) -> BreakerState {
        Living::breaker_state(&*self.pool.shared)
    }

    /// Stops lending. Waiters fail at once.
    pub fn trip(&self) {
        self.set(BreakerState::Inactive);
    }

    /// Lends again.
    pub fn reset(&self) {
        self.set(BreakerState::Active);
    }

    /// Tries whether the backend is back.
    pub fn probe(&self) {
        self.set(BreakerState::Recovering);
    }

    /// Lets another strategy decide from now on.
    pub fn set_strategy(&self, strategy: impl Strategy) {
        self.pool.shared.set_strategy(Some(Arc::new(strategy)));
    }

    /// From now on the breaker changes only by hand.
    pub fn remove_strategy(&self) {
        self.pool.shared.set_strategy(None);
    }

    fn set(&self, state: BreakerState) {
        let place = OneThread::<M>::here();
        self.pool.shared.set_breaker(None, state, place);
    }
}

impl<M: LocalManager + 'static> fmt::Debug for LocalBreaker<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalBreaker")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
