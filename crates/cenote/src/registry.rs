//! The list of living pools, for a page or an exporter that is added later.
//!
//! You need this module if your code wants to see every pool of the process, whatever is pooled. A
//! pool is on the list from its build until its last handle is dropped.
//!
//! ```
//! let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).name("sessions").build()?;
//! let seen = cenote::registry::pools();
//! let sessions = seen.iter().find(|pool| pool.name() == "sessions").unwrap();
//! assert_eq!(sessions.status().unwrap().max_size, 10);
//!
//! drop(pool);
//! assert!(sessions.status().is_none(), "the handle does not keep it alive");
//! # Ok::<_, cenote::ConfigError>(())
//! ```
//!
//! A pool of any kind can be controlled, too:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use cenote::breaker::BreakerState;
//! use cenote::status::SlotState;
//!
//! let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
//! drop(pool.acquire().await?);
//! let mut all = cenote::registry::pools().into_iter();
//! let any = all.find(|any| any.number() == pool.number()).unwrap();
//!
//! any.resize(2).unwrap()?;
//! any.suspend();
//! assert!(any.is_suspended() && pool.is_suspended());
//! any.resume();
//! any.invalidate();
//! assert_eq!((any.slots().unwrap().len(), any.waiters(5).unwrap().len()), (2, 0));
//! assert_eq!(any.slots().unwrap()[0].state, SlotState::Closing);
//! any.trip_breaker();
//! assert_eq!(any.breaker_state(), Some(BreakerState::Inactive));
//! any.probe_breaker();
//! any.reset_breaker();
//! assert_eq!(pool.breaker().state(), BreakerState::Active);
//! any.close();
//! assert!(any.is_closed() && pool.is_closed());
//! # Ok(()) }
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::advice;
use crate::breaker::BreakerState;
use crate::config::{Config, ConfigError};
use crate::event::Observer;
use crate::manager::Manager;
use crate::pool::Pool;
use crate::rt::sync::{AtomicU64, Ordering};
use crate::shell::guarded::guarded_now;
use crate::shell::kind::{Kind, Threads};
use crate::shell::shared::{PoolRef, Shared};
use crate::status::{Advice, Health, Holder, SlotView, Status, WaiterView};
use crate::time;

/// By number, so that the oldest pool comes first.
static POOLS: Mutex<BTreeMap<u64, AnyPool>> = Mutex::new(BTreeMap::new());

/// Returns all living pools, the oldest first.
pub fn pools() -> Vec<AnyPool> {
    let mut pools: Vec<_> = lock().values().cloned().collect();
    // Without the lock, because this may be left with the last reference to a pool, which then
    // leaves the list.
    pools.retain(|pool| pool.living().is_some());
    pools
}

/// A handle to a pool of any kind, which does not keep the pool open. Its methods return `None`
/// when the pool is gone. The [module](self) has an example.
#[derive(Clone)]
pub struct AnyPool {
    name: Arc<str>,
    number: u64,
    pool: Weak<dyn Controlled>,
}

impl AnyPool {
    /// Returns the pool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the pool, which no other pool of this process has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns what [`Pool::status`](crate::Pool::status) returns, without the annex.
    pub fn status(&self) -> Option<Status> {
        Some(self.living()?.status())
    }

    /// Returns what [`Pool::health`](crate::Pool::health) returns.
    pub fn health(&self) -> Option<Health> {
        Some(self.living()?.health())
    }

    /// Returns what [`Pool::leases`](crate::Pool::leases) returns.
    pub fn leases(&self) -> Option<Vec<Holder>> {
        Some(self.living()?.leases())
    }

    /// Returns what [`Pool::slots`](crate::Pool::slots) returns.
    pub fn slots(&self) -> Option<Vec<SlotView>> {
        Some(self.living()?.slots())
    }

    /// Returns what [`Pool::waiters`](crate::Pool::waiters) returns.
    pub fn waiters(&self, limit: usize) -> Option<Vec<WaiterView>> {
        Some(self.living()?.waiters(limit))
    }

    /// Returns what [`Pool::advice`](crate::Pool::advice) returns.
    pub fn advice(&self) -> Option<Vec<Advice>> {
        Some(self.living()?.advice(None))
    }

    /// Returns what [`Pool::advice_since`](crate::Pool::advice_since) returns.
    pub fn advice_since(&self, earlier: &Status, elapsed: Duration) -> Option<Vec<Advice>> {
        Some(self.living()?.advice(Some((earlier, elapsed))))
    }

    /// Returns what [`Pool::config`](crate::Pool::config) returns.
    pub fn config(&self) -> Option<Config> {
        Some(self.living()?.config())
    }

    /// Returns the state of the circuit breaker.
    pub fn breaker_state(&self) -> Option<BreakerState> {
        Some(self.living()?.breaker_state())
    }

    /// Does what [`Pool::attach`](crate::Pool::attach) does.
    pub fn attach(&self, observer: Arc<dyn Observer>) {
        if let Some(pool) = self.living() {
            pool.attach(observer);
        }
    }

    /// Does what [`Pool::detach`](crate::Pool::detach) does.
    pub fn detach(&self, observer: &Arc<dyn Observer>) -> bool {
        self.living().is_some_and(|pool| pool.detach(observer))
    }

    /// Returns what [`Pool::is_suspended`](crate::Pool::is_suspended) returns; false if the pool is
    /// gone.
    pub fn is_suspended(&self) -> bool {
        self.living().is_some_and(|pool| pool.is_suspended())
    }

    /// Returns what [`Pool::is_closed`](crate::Pool::is_closed) returns; true if the pool is gone.
    pub fn is_closed(&self) -> bool {
        self.living().is_none_or(|pool| pool.is_closed())
    }

    /// Does what [`Pool::resize`](crate::Pool::resize) does.
    pub fn resize(&self, max_size: usize) -> Option<Result<(), ConfigError>> {
        self.living()?.resize(max_size)
    }

    /// Does what [`Pool::invalidate`](crate::Pool::invalidate) does.
    pub fn invalidate(&self) {
        self.order(Verb::Invalidate);
    }

    /// Does what [`Pool::suspend`](crate::Pool::suspend) does.
    pub fn suspend(&self) {
        self.order(Verb::Suspend);
    }

    /// Does what [`Pool::resume`](crate::Pool::resume) does.
    pub fn resume(&self) {
        self.order(Verb::Resume);
    }

    /// Does what [`Pool::close`](crate::Pool::close) does.
    pub fn close(&self) {
        self.order(Verb::Close);
    }

    /// Does what [`Breaker::trip`](crate::breaker::Breaker::trip) does.
    pub fn trip_breaker(&self) {
        self.order(Verb::Breaker(BreakerState::Inactive));
    }

    /// Does what [`Breaker::reset`](crate::breaker::Breaker::reset) does.
    pub fn reset_breaker(&self) {
        self.order(Verb::Breaker(BreakerState::Active));
    }

    /// Does what [`Breaker::probe`](crate::breaker::Breaker::probe) does.
    pub fn probe_breaker(&self) {
        self.order(Verb::Breaker(BreakerState::Recovering));
    }

    fn order(&self, verb: Verb) {
        if let Some(pool) = self.living() {
            pool.obey(verb);
        }
    }

    fn living(&self) -> Option<Arc<dyn Controlled>> {
        self.pool.upgrade().filter(|pool| pool.has_handles())
    }
}

impl fmt::Debug for AnyPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyPool")
            .field("name", &self.name)
            .field("status", &self.status())
            .finish()
    }
}

/// What a pool of any kind can be told to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb {
    Invalidate,
    Suspend,
    Resume,
    Close,
    Breaker(BreakerState),
}

/// A pool whose manager is forgotten.
trait Controlled: Living + Send + Sync {
    fn resize(self: Arc<Self>, max_size: usize) -> Option<Result<(), ConfigError>>;
    fn obey(self: Arc<Self>, verb: Verb);
}

/// The questions to a pool of any kind.
pub(crate) trait Living {
    fn has_handles(&self) -> bool;
    fn status(&self) -> Status;
    fn health(&self) -> Health;
    fn leases(&self) -> Vec<Holder>;
    fn slots(&self) -> Vec<SlotView>;
    fn waiters(&self, limit: usize) -> Vec<WaiterView>;
    fn advice(&self, since: Option<(&Status, Duration)>) -> Vec<Advice>;
    fn config(&self) -> Config;
    fn is_suspended(&self) -> bool;
    fn is_closed(&self) -> bool;
    fn breaker_state(&self) -> BreakerState;
    fn attach(&self, observer: Arc<dyn Observer>);
    fn detach(&self, observer: &Arc<dyn Observer>) -> bool;
}

impl<K: Kind> Living for Shared<K> {
    fn has_handles(&self) -> bool {
        self.handles.load(Ordering::Relaxed) > 0
    }

    fn status(&self) -> Status {
        self.ledger_off_trays().status(time::now())
    }

    fn health(&self) -> Health {
        self.ledger_off_trays().health(time::now())
    }

    fn leases(&self) -> Vec<Holder> {
        self.ledger_off_trays().holders(time::now())
    }

    fn slots(&self) -> Vec<SlotView> {
        self.ledger_off_trays().slot_views(time::now())
    }

    fn waiters(&self, limit: usize) -> Vec<WaiterView> {
        self.ledger().waiter_views(limit, time::now())
    }

    fn advice(&self, since: Option<(&Status, Duration)>) -> Vec<Advice> {
        let now = time::now();
        let ledger = self.ledger_off_trays();
        let (facts, failure) = (ledger.facts(now), ledger.last_failure());
        drop(ledger);
        // The text of an error is user code.
        let failure = failure.map(|failure| guarded_now(|| failure.to_string()));
        let failure = failure.map(|text| text.unwrap_or_else(|mishap| mishap.to_string()));
        let mut all = advice::present(&facts, failure.as_deref());
        let built = Status::default();
        let (earlier, elapsed) = since.unwrap_or((&built, facts.age));
        all.extend(Advice::between(earlier, &facts.status, elapsed));
        all
    }

    fn is_suspended(&self) -> bool {
        self.ledger().is_suspended()
    }

    fn is_closed(&self) -> bool {
        self.ledger().is_closed()
    }

    fn config(&self) -> Config {
        let mut config = Config::clone(&self.limits);
        config.max_size = self.ledger().status(time::now()).max_size;
        config
    }

    fn breaker_state(&self) -> BreakerState {
        self.ledger().breaker().state
    }

    fn attach(&self, observer: Arc<dyn Observer>) {
        self.observers.attach(observer);
        self.clock.set_observed(true);
    }

    fn detach(&self, observer: &Arc<dyn Observer>) -> bool {
        let found = self.observers.detach(observer);
        self.clock.set_observed(self.observers.any());
        found
    }
}

impl<M: Manager + 'static> Controlled for Shared<Threads<M>> {
    fn resize(self: Arc<Self>, max_size: usize) -> Option<Result<(), ConfigError>> {
        Some(Pool::of(PoolRef(self))?.resize(max_size))
    }

    fn obey(self: Arc<Self>, verb: Verb) {
        let Some(pool) = Pool::of(PoolRef(self)) else {
            return;
        };
        match verb {
            Verb::Invalidate => pool.invalidate(),
            Verb::Suspend => pool.suspend(),
            Verb::Resume => pool.resume(),
            Verb::Close => pool.close(),
            Verb::Breaker(state) => pool.breaker().set(state),
        }
    }
}

/// The number of a new pool.
pub(crate) fn number() -> u64 {
    static BUILT: AtomicU64 = AtomicU64::new(1);
    BUILT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn enter<M: Manager + 'static>(shared: &PoolRef<Threads<M>>) {
    let pool: Arc<dyn Controlled> = Arc::clone(&shared.0) as _;
    let entry = AnyPool {
        name: Arc::clone(&shared.name),
        number: shared.own.number,
        pool: Arc::downgrade(&pool),
    };
    lock().insert(shared.own.number, entry);
}

pub(crate) fn leave(number: u64) {
    let gone = lock().remove(&number);
    drop(gone);
}

fn lock() -> MutexGuard<'static, BTreeMap<u64, AnyPool>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}
