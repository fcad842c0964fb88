//! The builder: how a key gets its manager, the size of the budget, and the settings of each pool.

use std::fmt;
use std::hash::Hash;

use cenote::{Config, Manager, SharedUpkeep};

use crate::error::BuildError;
use crate::keyed::Keyed;
use crate::pools::{Making, Pools};
use crate::room::Room;

/// Builds [`Pools`]. Building opens nothing.
///
/// There is one setter for each field of [`cenote::Config`], which holds for the pool of each key.
/// `max_size` is the cap of one key. `name` is the first part of the name of each pool.
///
/// ```
/// # struct Sessions;
/// # impl cenote::Manager for Sessions {
/// #     type Resource = ();
/// #     type Error = String;
/// #     async fn open(&self) -> Result<(), String> { Ok(()) }
/// # }
/// use std::time::Duration;
/// use cenote_keyed::Pools;
///
/// let pools = Pools::builder(|_host: &String| Sessions)
///     .total(50)
///     .max_size(5)
///     .acquire_timeout(Duration::from_secs(3))
///     .build()?;
/// assert_eq!(pools.status().total, 50);
/// # Ok::<_, cenote_keyed::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<K, M: Manager + 'static> {
    making: Making<K, M>,
    total: usize,
}

pub(crate) type ForKey<K, M> = Box<dyn Fn(&K) -> M + Send + Sync>;
pub(crate) type Customize<K, M> =
    Box<dyn Fn(&K, cenote::Builder<Keyed<M>>) -> cenote::Builder<Keyed<M>> + Send + Sync>;

impl<K, M> Builder<K, M>
where
    K: Hash + Eq + Clone + fmt::Debug + Send + Sync + 'static,
    M: Manager + 'static,
{
    pub(crate) fn new(for_key: ForKey<K, M>) -> Self {
        Self {
            making: Making {
                for_key,
                config: Config::default(),
                customize: Box::new(|_, pool| pool),
                upkeep: SharedUpkeep::new(),
            },
            total: TOTAL,
        }
    }

    /// Sets how many resources all keys together may have at once. Default 100, at least 1.
    /// [`Pools::resize`] changes it later.
    pub fn total(mut self, total: usize) -> Self {
        self.total = total;
        self
    }

    /// Takes all settings of the pools from `config`, also those that were set before.
    pub fn config(mut self, config: Config) -> Self {
        self.making.config = config;
        self
    }

    /// Sets the first part of the name of each pool. The second is the key. Default `keyed`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.making.config.name = Some(name.into());
        self
    }

    /// Adds hooks, observers, a breaker or settings to the pool of a key, when it is built.
    ///
    /// `open_timeout` must be set on this builder. Set there, it would include the wait for a
    /// place.
    pub fn pool<F>(mut self, customize: F) -> Self
    where
        F: Fn(&K, cenote::Builder<Keyed<M>>) -> cenote::Builder<Keyed<M>> + Send + Sync + 'static,
    {
        self.making.customize = Box::new(customize);
        self
    }

    /// Builds the pools, or says which setting is wrong.
    pub fn build(self) -> Result<Pools<K, M>, BuildError> {
        if self.total == 0 {
            return Err(BuildError::Total);
        }
        let config = self.making.config.clone();
        // The settings of all keys are checked once, by a pool that is dropped again.
        let trial = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
        trial.config(config).build().map_err(BuildError::Config)?;
        Ok(Pools::new(self.making, Room::new(self.total)))
    }
}

/// As many connections as a PostgreSQL server allows by default.
const TOTAL: usize = 100;

/// Writes one setter per field of [`cenote::Config`].
macro_rules! settings {
    ($($field:ident: $type:ty;)*) => {
        impl<K, M: Manager + 'static> Builder<K, M> {$(
            #[doc = concat!("Sets [`cenote::Config::", stringify!($field), "`] of each pool.")]
            pub fn $field(mut self, $field: $type) -> Self {
                self.making.config.$field = $field.into();
                self
            }
        )*}
    };
}

cenote::for_each_setting!(settings);

impl<K, M: Manager + 'static> fmt::Debug for Builder<K, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("total", &self.total)
            .field("config", &self.making.config)
            .finish_non_exhaustive()
    }
}
