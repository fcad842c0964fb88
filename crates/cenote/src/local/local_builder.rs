//! The builder of a pool that belongs to one thread.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::local_pool::LocalPool;
use super::one_thread::{LocalHook, OneThread};
use crate::breaker::Strategy;
use crate::config::{Config, ConfigError};
use crate::event::Observer;
use crate::hook::Hooks;
use crate::local_manager::LocalManager;
use crate::shell::shared::{Parts, PoolRef, Shared};
use crate::shell::strategy::StrategyPlace;

/// Builds a [`LocalPool`]. The settings are those of [`Builder`](crate::Builder).
///
/// ```
/// use cenote::local::LocalPool;
///
/// let pool = LocalPool::from_fn(async || Ok::<_, &str>(())).name("worker 3").max_size(2).build()?;
/// assert_eq!((pool.name(), pool.config().max_size), ("worker 3", 2));
/// # Ok::<_, cenote::ConfigError>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct LocalBuilder<M: LocalManager + 'static> {
    pub(super) manager: M,
    config: Config,
    hooks: Hooks<LocalHook<M::Resource>>,
    observers: Vec<Arc<dyn Observer>>,
    strategy: Option<Arc<dyn Strategy>>,
    seed: Option<u64>,
}

macro_rules! setters {
    ($($field:ident: $type:ty;)*) => {
        impl<M: LocalManager + 'static> LocalBuilder<M> {$(
            #[doc = concat!("Sets [`Config::", stringify!($field), "`].")]
            pub fn $field(mut self, $field: $type) -> Self {
                self.config.$field = $field.into();
                self
            }
        )*}
    };
}

crate::for_each_setting!(setters);

impl<M: LocalManager + 'static> LocalBuilder<M> {
    pub(super) fn new(manager: M) -> Self {
        Self {
            manager,
            config: Config::default(),
            hooks: Hooks {
                before_acquire: None,
                before_release: None,
            },
            observers: Vec::new(),
            strategy: None,
            seed: None,
        }
    }

    /// Takes all settings from `config`, also those that were set before. [`Config::divide`] has an
    /// example.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets [`Config::name`].
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = Some(name.into());
        self
    }

    /// Sets the hook that is asked before an idle resource is lent. As
    /// [`Builder::before_acquire`](crate::Builder::before_acquire), and its future stays on its
    /// thread.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::task::LocalSet::new().run_until(async {
    /// # use cenote::local::LocalPool;
    /// use std::cell::Cell;
    /// use std::rc::Rc;
    ///
    /// let asked = Rc::new(Cell::new(0));
    /// let count = Rc::clone(&asked);
    /// let pool = LocalPool::from_fn(async || Ok::<_, &str>(()))
    ///     .before_acquire(async move |_: &mut ()| {
    ///         count.set(count.get() + 1);
    ///         true
    ///     })
    ///     .build()?;
    /// drop(pool.acquire().await?);
    /// drop(pool.acquire().await?);
    /// assert_eq!(asked.get(), 1, "it is not asked about a fresh one");
    /// # Ok(()) }).await }
    /// ```
    pub fn before_acquire(mut self, ask: impl AsyncFn(&mut M::Resource) -> bool + 'static) -> Self {
        self.hooks.before_acquire = Some(local_hook(ask));
        self
    }

    /// Sets the hook that is asked before a resource goes back to idle. As
    /// [`Builder::before_release`](crate::Builder::before_release).
    pub fn before_release(mut self, ask: impl AsyncFn(&mut M::Resource) -> bool + 'static) -> Self {
        self.hooks.before_release = Some(local_hook(ask));
        self
    }

    /// Adds an observer. As [`Builder::observer`](crate::Builder::observer). Observers are `Send`,
    /// because they may be shared with pools of other threads.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Lets `strategy` decide when the pool stops lending. As
    /// [`Builder::breaker`](crate::Builder::breaker).
    pub fn breaker(mut self, strategy: impl Strategy) -> Self {
        self.strategy = Some(Arc::new(strategy));
        self
    }

    /// The seed of every random draw of this pool, so that a simulation can be played again.
    #[doc(hidden)]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Builds the pool, or says which setting is wrong. It opens nothing, and needs no `LocalSet`.
    pub fn build(self) -> Result<LocalPool<M>, ConfigError> {
        let parts = Parts::<OneThread<M>> {
            manager: self.manager,
            hooks: self.hooks,
            observers: self.observers,
            strategy: StrategyPlace::new(self.strategy, None),
            seed: self.seed,
            upkeep: Arc::default(),
            own: (),
        };
        let shared = PoolRef(Rc::new(Shared::build(self.config, parts)?));
        Ok(LocalPool { shared })
    }
}

pub(super) fn local_hook<R: 'static>(ask: impl AsyncFn(&mut R) -> bool + 'static) -> LocalHook<R> {
    let ask = Rc::new(ask);
    Rc::new(move |resource| {
        let ask = Rc::clone(&ask);
        Box::pin(async move { ask(resource).await })
    })
}

impl<M: LocalManager + 'static> fmt::Debug for LocalBuilder<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalBuilder")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
