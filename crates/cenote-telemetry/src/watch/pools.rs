//! Which pools an exporter shows.

use cenote::registry::{self, AnyPool};
use cenote::{Manager, Pool};

/// The pools that an exporter shows: all pools of the process, or some.
///
/// An exporter keeps no pool alive. Of two pools with one name, the second is shown as `name#2`.
///
/// ```
/// # #[cfg(feature = "prometheus")] {
/// use cenote::Pool;
/// use cenote_telemetry::{Pools, Prometheus};
///
/// let [one, two, third] = ["alpha", "beta", "gamma"]
///     .map(|name| Pool::from_fn(async || Ok::<_, &str>(())).name(name).build().unwrap());
/// let some = Prometheus::new(Pools::of(&one).and(&two)).render();
/// assert!(some.contains("alpha") && some.contains("beta") && !some.contains("gamma"));
///
/// let all = Prometheus::new(Pools::all()).render();
/// assert!(all.contains("gamma"));
/// # drop(third);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Pools(Option<Vec<AnyPool>>);

impl Pools {
    /// All living pools, those included that are built later.
    pub fn all() -> Self {
        Self(None)
    }

    /// This pool only.
    pub fn of<M: Manager + 'static>(pool: &Pool<M>) -> Self {
        Self(Some(Vec::new())).and(pool)
    }

    /// And this pool.
    pub fn and<M: Manager + 'static>(mut self, pool: &Pool<M>) -> Self {
        if let Some(some) = &mut self.0 {
            some.extend(of_any_kind(pool));
        }
        self
    }

    /// Returns them, with those that are gone left out where that is known.
    pub(crate) fn now(&self) -> Vec<AnyPool> {
        match &self.0 {
            None => registry::pools(),
            Some(some) => some.clone(),
        }
    }
}

impl Default for Pools {
    fn default() -> Self {
        Self::all()
    }
}

/// Finds the pool on the list of living pools.
fn of_any_kind<M: Manager + 'static>(pool: &Pool<M>) -> Option<AnyPool> {
    let mut all = registry::pools().into_iter();
    all.find(|any| any.number() == pool.number())
}
