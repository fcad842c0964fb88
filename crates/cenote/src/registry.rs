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

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::breaker::BreakerState;
use crate::config::Config;
use crate::event::Observer;
use crate::manager::Manager;
use crate::rt::sync::{AtomicU64, Ordering};
use crate::shell::shared::Shared;
use crate::status::{Health, Holder, Status};
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
    pool: Weak<dyn Living>,
}

impl AnyPool {
    /// Returns the pool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what [`Pool::status`](crate::Pool::status) returns.
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

    fn living(&self) -> Option<Arc<dyn Living>> {
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

/// A pool whose kind is forgotten.
pub(crate) trait Living: Send + Sync {
    fn has_handles(&self) -> bool;
    fn status(&self) -> Status;
    fn health(&self) -> Health;
    fn leases(&self) -> Vec<Holder>;
    fn config(&self) -> Config;
    fn breaker_state(&self) -> BreakerState;
    fn attach(&self, observer: Arc<dyn Observer>);
    fn detach(&self, observer: &Arc<dyn Observer>) -> bool;
}

impl<M: Manager + 'static> Living for Shared<M> {
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

/// The number of a new pool.
pub(crate) fn number() -> u64 {
    static BUILT: AtomicU64 = AtomicU64::new(1);
    BUILT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn enter<M: Manager + 'static>(shared: &Arc<Shared<M>>) {
    let pool: Arc<dyn Living> = Arc::clone(shared) as _;
    let entry = AnyPool {
        name: Arc::clone(&shared.name),
        pool: Arc::downgrade(&pool),
    };
    lock().insert(shared.number, entry);
}

pub(crate) fn leave(number: u64) {
    let gone = lock().remove(&number);
    drop(gone);
}

fn lock() -> MutexGuard<'static, BTreeMap<u64, AnyPool>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}
