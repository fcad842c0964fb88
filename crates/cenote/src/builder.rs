//! The builder of a pool, and what cannot be data: hooks, observers and the breaker's strategy.

use std::fmt;
use std::sync::Arc;

use crate::annex::Annex;
use crate::breaker::{SharedBreaker, Strategy};
use crate::config::{Config, ConfigError};
use crate::event::Observer;
use crate::hook::{AsyncPredicate, Hook, Hooks, hook};
use crate::manager::Manager;
use crate::pool::Pool;
use crate::registry;
use crate::shared_upkeep::SharedUpkeep;
use crate::shell::breaker_group::BreakerGroup;
use crate::shell::kind::{OfThreads, Threads};
use crate::shell::shared::{Parts, PoolRef, Shared, generated_name};
use crate::shell::strategy::StrategyPlace;
use crate::time::alarm::Alarming;

/// Builds a [`Pool`]. Settings that are not set have the default of [`Config`].
///
/// It comes from [`Pool::builder`], or from [`Pool::from_fn`].
///
/// ```
/// use std::time::Duration;
/// use cenote::Pool;
///
/// let pool = Pool::from_fn(async || Ok::<_, &str>(()))
///     .name("sessions")
///     .max_size(20)
///     .acquire_timeout(Duration::from_secs(1))
///     .idle_timeout(None)
///     .build()?;
/// assert_eq!(pool.name(), "sessions");
/// assert_eq!(pool.config().idle_timeout, None);
/// # Ok::<_, cenote::ConfigError>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<M: Manager + 'static> {
    pub(crate) manager: M,
    pub(crate) config: Config,
    hooks: Hooks<Hook<M::Resource>>,
    observers: Vec<Arc<dyn Observer>>,
    strategy: Option<Arc<dyn Strategy>>,
    shared_breaker: Option<SharedBreaker>,
    upkeep: SharedUpkeep<M>,
    seed: Option<u64>,
    pub(crate) annex: Option<Annex<M>>,
}

impl<M: Manager + 'static> Builder<M> {
    pub(crate) fn new(manager: M) -> Self {
        Self {
            manager,
            config: Config::default(),
            hooks: Hooks {
                before_acquire: None,
                before_release: None,
            },
            observers: Vec::new(),
            strategy: None,
            shared_breaker: None,
            upkeep: SharedUpkeep::new(),
            seed: None,
            annex: None,
        }
    }

    /// Returns a builder with the hooks, the observers and the breaker of this one, which they
    /// share from now on.
    pub(crate) fn alike(&mut self, manager: M, config: Config) -> Self {
        let strategy = self.strategy.take();
        self.shared_breaker.get_or_insert_with(|| SharedBreaker {
            group: Arc::new(BreakerGroup::new(strategy)),
        });
        Self {
            manager,
            config,
            hooks: Hooks {
                before_acquire: self.hooks.before_acquire.clone(),
                before_release: self.hooks.before_release.clone(),
            },
            observers: self.observers.clone(),
            strategy: None,
            shared_breaker: self.shared_breaker.clone(),
            upkeep: self.upkeep.clone(),
            seed: self.seed,
            annex: None,
        }
    }

    /// Sets the hook that is asked before an idle resource is lent. It is not asked about a fresh
    /// one. A resource that it says no to is closed, and the caller gets another. Limited by
    /// `check_timeout`.
    ///
    /// The hook must be awaited, so with a hook `try_acquire` finds nothing. The module
    /// [`hook`](crate::hook) shows how a hook holds state.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::{CloseReason, Pool};
    ///
    /// let pool = Pool::from_fn(async || Ok::<_, &str>(String::new()))
    ///     .before_acquire(async |text: &mut String| text.is_empty())
    ///     .build()?;
    /// pool.acquire().await?.push_str("left over");
    /// assert_eq!(*pool.acquire().await?, "", "a fresh one");
    /// assert_eq!(pool.status().closes.by(CloseReason::Refused), 1);
    /// # Ok(()) }
    /// ```
    pub fn before_acquire(mut self, ask: impl for<'a> AsyncPredicate<'a, M::Resource>) -> Self {
        self.hooks.before_acquire = Some(hook(ask));
        self
    }

    /// Sets the hook that is asked before a resource goes back to idle, in a task of the pool. A
    /// resource that it says no to is closed, and the breaker counts a failure. Limited by
    /// `clean_timeout`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::{Lease, Pool};
    ///
    /// let pool = Pool::from_fn(async || Ok::<_, &str>(String::new()))
    ///     .before_release(async |text: &mut String| {
    ///         text.clear();
    ///         text.capacity() < 1024
    ///     })
    ///     .build()?;
    /// let mut text = pool.acquire().await?;
    /// text.push_str("work");
    /// Lease::release(text).await;
    /// assert_eq!(*pool.acquire().await?, "");
    /// # Ok(()) }
    /// ```
    pub fn before_release(mut self, ask: impl for<'a> AsyncPredicate<'a, M::Resource>) -> Self {
        self.hooks.before_release = Some(hook(ask));
        self
    }

    /// Adds an observer. There may be several. The module [`event`](crate::event) lists the events.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use cenote::event::{Observer, PoolOpened};
    ///
    /// #[derive(Default)]
    /// struct Names(Mutex<Vec<String>>);
    ///
    /// impl Observer for Names {
    ///     fn pool_opened(&self, event: &PoolOpened<'_>) {
    ///         self.0.lock().unwrap().push(event.pool.to_owned());
    ///     }
    /// }
    ///
    /// let names = Arc::new(Names::default());
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
    /// let _pool = pool.name("sessions").observer(names.clone()).build()?;
    /// assert_eq!(*names.0.lock().unwrap(), ["sessions"]);
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Lets `strategy` decide when the pool stops lending, and when it tries again. Without a
    /// strategy the breaker changes only by hand. The module [`breaker`](crate::breaker) has two
    /// strategies.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::breaker::ConsecutiveFailures;
    /// use cenote::{AcquireError, Pool};
    ///
    /// let pool = Pool::from_fn(async || Err::<(), _>("connection refused"))
    ///     .breaker(ConsecutiveFailures::new(1))
    ///     .build()?;
    /// assert!(matches!(pool.acquire().await, Err(AcquireError::Open { .. })));
    /// assert!(matches!(pool.acquire().await, Err(AcquireError::Unavailable(_))));
    /// # Ok(()) }
    /// ```
    pub fn breaker(mut self, strategy: impl Strategy) -> Self {
        self.strategy = Some(Arc::new(strategy));
        self
    }

    /// Shares one breaker with other pools, in place of one of its own. [`SharedBreaker`] has an
    /// example.
    pub fn shared_breaker(mut self, breaker: &SharedBreaker) -> Self {
        self.shared_breaker = Some(breaker.clone());
        self
    }

    /// Shares one upkeep task with other pools, in place of one of its own. [`SharedUpkeep`] has an
    /// example.
    pub fn shared_upkeep(mut self, upkeep: &SharedUpkeep<M>) -> Self {
        self.upkeep = upkeep.clone();
        self
    }

    /// The seed of every random draw of this pool (back-off, lifetime), so that a simulation can be
    /// played again.
    #[doc(hidden)]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Builds the pool, or says which setting is wrong. It opens nothing: see [`Pool::warm`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote::Pool;
    ///
    /// let pool = Pool::from_fn(async || Ok::<_, &str>(())).min_size(2).build()?;
    /// assert_eq!(pool.status().total, 0);
    ///
    /// let built = Pool::from_fn(async || Ok::<_, &str>(())).max_size(0).build();
    /// assert_eq!(built.unwrap_err().field(), "max_size");
    /// # Ok(()) }
    /// ```
    pub fn build(mut self) -> Result<Pool<M>, ConfigError> {
        self.config.name.get_or_insert_with(generated_name);
        let annex = self.build_annex()?;
        let numbers = annex.as_ref().map(|annex| {
            let mut ledger = annex.shared.ledger();
            Arc::clone(ledger.numbers.get_or_insert_default())
        });
        let group = self.shared_breaker.map(|breaker| breaker.group);
        let parts = Parts {
            manager: self.manager,
            hooks: self.hooks,
            observers: self.observers,
            strategy: StrategyPlace::new(self.strategy, group.clone()),
            seed: self.seed,
            upkeep: self.upkeep.group,
            own: OfThreads {
                alarm: Alarming::default(),
                number: registry::number(),
                annex,
            },
        };
        let shared: PoolRef<Threads<M>> = PoolRef(Arc::new(Shared::build(self.config, parts)?));
        shared.ledger().numbers = numbers;
        registry::enter(&shared);
        if let Some(group) = group {
            group.join(&shared);
        }
        let pool = Pool { shared };
        pool.manager().built(&pool);
        Ok(pool)
    }
}

impl<M: Manager + 'static> fmt::Debug for Builder<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
