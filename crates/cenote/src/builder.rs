//! The builder: sugar over [`Config`], and what cannot be data.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use crate::alarm::Alarming;
use crate::breaker::Strategy;
use crate::clock::Clock;
use crate::config::{Config, ConfigError, IdleOrder, Limits, Nested, OnOpenError, WarmUp};
use crate::hooks::{AsyncPredicate, Hooks, hook};
use crate::ledger::{Ledger, may_use_trays};
use crate::manager::Manager;
use crate::observer::{Observer, Observers, PoolOpened};
use crate::pool::Pool;
use crate::rt;
use crate::shared::Shared;
use crate::sync::{AtomicU64, AtomicUsize, CachePadded, Mutex, Ordering};
use crate::tray::Trays;
use crate::upkeep::Upkeep;

/// Builds a [`Pool`]. What is not set has the default of [`Config`].
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<M: Manager + 'static> {
    pub(crate) manager: M,
    config: Config,
    hooks: Hooks<M::Resource>,
    observers: Observers,
    strategy: Option<Box<dyn Strategy>>,
    seed: Option<u64>,
}

/// One setter per field of [`Config`].
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        pub fn $field(mut self, $field: $type) -> Self {
            self.config.$field = $field.into();
            self
        }
    )*};
}

impl<M: Manager + 'static> Builder<M> {
    pub(crate) fn new(manager: M) -> Self {
        Self {
            manager,
            config: Config::default(),
            hooks: Hooks::default(),
            observers: Observers::default(),
            strategy: None,
            seed: None,
        }
    }

    /// Takes all settings from `config`.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets [`Config::name`].
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = Some(name.into());
        self
    }

    setters! {
        /// Sets [`Config::max_size`].
        max_size: usize;
        /// Sets [`Config::min_size`].
        min_size: usize;
        /// Sets [`Config::min_idle`].
        min_idle: usize;
        /// Sets [`Config::acquire_timeout`].
        acquire_timeout: impl Into<Option<Duration>>;
        /// Sets [`Config::open_timeout`].
        open_timeout: impl Into<Option<Duration>>;
        /// Sets [`Config::max_opening`].
        max_opening: usize;
        /// Sets [`Config::on_open_error`].
        on_open_error: OnOpenError;
        /// Sets [`Config::idle_timeout`].
        idle_timeout: impl Into<Option<Duration>>;
        /// Sets [`Config::max_lifetime`].
        max_lifetime: impl Into<Option<Duration>>;
        /// Sets [`Config::lifetime_jitter`].
        lifetime_jitter: f64;
        /// Sets [`Config::max_uses`].
        max_uses: u64;
        /// Sets [`Config::check_after_idle`].
        check_after_idle: impl Into<Option<Duration>>;
        /// Sets [`Config::check_on_return`].
        check_on_return: bool;
        /// Sets [`Config::check_timeout`].
        check_timeout: Duration;
        /// Sets [`Config::clean_timeout`].
        clean_timeout: Duration;
        /// Sets [`Config::close_timeout`].
        close_timeout: Duration;
        /// Sets [`Config::heartbeat_interval`].
        heartbeat_interval: impl Into<Option<Duration>>;
        /// Sets [`Config::upkeep_interval`].
        upkeep_interval: Duration;
        /// Sets [`Config::leak_after`].
        leak_after: impl Into<Option<Duration>>;
        /// Sets [`Config::stuck_after`].
        stuck_after: Duration;
        /// Sets [`Config::idle_order`].
        idle_order: IdleOrder;
        /// Sets [`Config::max_waiters`].
        max_waiters: usize;
        /// Sets [`Config::nested`].
        nested: Nested;
        /// Sets [`Config::warm_up`].
        warm_up: WarmUp;
        /// Sets [`Config::probes`].
        probes: usize;
    }

    /// Asked before an idle resource is lent, not for a fresh one. No: it is closed, and the next one is tried. Limited by
    /// `check_timeout`.
    ///
    /// With such a hook `try_acquire` finds nothing, for the hook must be awaited.
    pub fn before_acquire(mut self, ask: impl for<'a> AsyncPredicate<'a, M::Resource>) -> Self {
        self.hooks.before_acquire = Some(hook(ask));
        self
    }

    /// Asked before a resource goes back to idle, in a task of the pool. No: it is closed, and the breaker is told. Limited by
    /// `clean_timeout`.
    pub fn before_release(mut self, ask: impl for<'a> AsyncPredicate<'a, M::Resource>) -> Self {
        self.hooks.before_release = Some(hook(ask));
        self
    }

    /// Adds an observer. There may be several.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Lets `strategy` decide when the pool stops lending, and when it tries again. Without one it lends always.
    pub fn breaker(mut self, strategy: impl Strategy) -> Self {
        self.strategy = Some(Box::new(strategy));
        self
    }

    /// The seed of every random draw of this pool (back-off, lifetime), so that a simulation can be played again.
    #[doc(hidden)]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Builds the pool. Opens nothing; [`warm`](Pool::warm) does. The one place that refuses a wrong value.
    pub fn build(self) -> Result<Pool<M>, ConfigError> {
        let limits = Arc::new(Limits::check(self.config)?);
        let name: Arc<str> = limits
            .name
            .as_deref()
            .map_or_else(generated_name, Arc::from);
        let asks = self.hooks.before_acquire.is_some();
        let hooked = asks || self.hooks.before_release.is_some();
        let trays = if may_use_trays(&limits, hooked) {
            Trays::for_size(limits.max_size)
        } else {
            Trays::for_size(0)
        };
        let seed = self
            .seed
            .unwrap_or_else(|| RandomState::new().hash_one(&name));
        let shared = Shared {
            name: Arc::clone(&name),
            manager: self.manager,
            clock: Clock::new(self.observers.any()),
            works_on_return: limits.check_on_return || self.hooks.before_release.is_some(),
            hooks: self.hooks,
            observers: self.observers,
            strategy: self.strategy,
            ledger: CachePadded(Mutex::new(Ledger::new(
                Arc::clone(&limits),
                name,
                asks,
                trays.len(),
                seed,
                rt::now(),
            ))),
            trays,
            limits,
            upkeep: Arc::new(Upkeep::new()),
            alarmed: Alarming::default(),
            handles: AtomicUsize::new(1),
        };
        let event = PoolOpened {
            pool: &shared.name,
            max_size: shared.limits.max_size,
        };
        shared
            .observers
            .tell(|observer| observer.pool_opened(&event));
        Ok(Pool {
            shared: Arc::new(shared),
        })
    }
}

fn generated_name() -> Arc<str> {
    static BUILT: AtomicU64 = AtomicU64::new(1);
    format!("pool-{}", BUILT.fetch_add(1, Ordering::Relaxed)).into()
}

impl<M: Manager + 'static> fmt::Debug for Builder<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .field("hooks", &self.hooks)
            .finish_non_exhaustive()
    }
}
