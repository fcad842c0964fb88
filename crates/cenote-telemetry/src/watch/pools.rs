//! Which pools an exporter shows.

use cenote::registry::{self, AnyPool};
use cenote::{Manager, Pool};
#[cfg(feature = "fleet")]
use cenote_fleet::FleetWatch;

use crate::watch::figures::Fleet;

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
#[derive(Clone, Debug, Default)]
pub struct Pools {
    /// All of them, if this is absent.
    some: Option<Vec<AnyPool>>,
    #[cfg(feature = "fleet")]
    fleets: Vec<FleetWatch>,
}

impl Pools {
    /// All living pools, those included that are built later.
    pub fn all() -> Self {
        Self::default()
    }

    /// This pool only.
    pub fn of<M: Manager + 'static>(pool: &Pool<M>) -> Self {
        let mut pools = Self::all();
        pools.some = Some(Vec::new());
        pools.and(pool)
    }

    /// And this pool.
    pub fn and<M: Manager + 'static>(mut self, pool: &Pool<M>) -> Self {
        if let Some(some) = &mut self.some {
            some.extend(of_any_kind(pool));
        }
        self
    }

    /// And the figures of this fleet, beside those of its pool.
    ///
    /// ```
    /// # #[cfg(feature = "prometheus")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use cenote_fleet::{Fleet, Memory};
    /// use cenote_telemetry::{Pools, Prometheus};
    ///
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).name("orders").build()?;
    /// let fleet = Fleet::on(Memory::new()).capacity(80).join(&pool).await?;
    ///
    /// let text = Prometheus::new(Pools::all().fleet(&fleet)).render();
    /// assert!(text.contains("cenote_fleet_capacity{pool=\"orders\"} 80\n"), "{text}");
    /// # Ok(()) }
    /// # #[cfg(not(feature = "prometheus"))]
    /// # fn main() {}
    /// ```
    #[cfg(feature = "fleet")]
    pub fn fleet(mut self, fleet: &cenote_fleet::Fleet) -> Self {
        self.fleets.push(fleet.watch());
        self
    }

    /// Returns the fleet of the pool with this number. The last one counts, because a pool may
    /// leave and join another.
    #[cfg_attr(
        not(feature = "fleet"),
        expect(unused_variables, reason = "there are no fleets")
    )]
    pub(crate) fn fleet_of(&self, number: u64) -> Option<Fleet> {
        #[cfg(feature = "fleet")]
        {
            let mut fleets = self.fleets.iter().rev();
            let found = fleets.find(|fleet| fleet.pool_number() == number && !fleet.has_left());
            found.map(Fleet::of)
        }
        #[cfg(not(feature = "fleet"))]
        None
    }

    /// Returns them, with those that are gone left out where that is known.
    pub(crate) fn now(&self) -> Vec<AnyPool> {
        match &self.some {
            None => registry::pools(),
            Some(some) => some.clone(),
        }
    }
}

/// Finds the pool on the list of living pools.
fn of_any_kind<M: Manager + 'static>(pool: &Pool<M>) -> Option<AnyPool> {
    let mut all = registry::pools().into_iter();
    all.find(|any| any.number() == pool.number())
}
