//! The pools of one exporter, with a recorder on each of them.

#[cfg_attr(
    not(all(feature = "metrics", feature = "otel", feature = "prometheus")),
    allow(dead_code, reason = "each exporter has names and units of its own")
)]
pub(crate) mod figures;
#[cfg(feature = "fleet")]
mod fleets;
mod pools;
pub(crate) mod recorder;
pub(crate) mod table;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cenote::event::Observer;
use cenote::registry::AnyPool;

use self::figures::{Fleet, Snapshot, Time};
pub use self::pools::Pools;
use self::recorder::{Distribution, Recorder};

pub(crate) struct Watch<D: Distribution> {
    pools: Pools,
    make: Box<Make<D>>,
    /// Taken when figures are read, never by an event.
    watched: Mutex<Vec<Arc<Watched<D>>>>,
}

/// Makes a distribution for the pool with this label.
type Make<D> = dyn Fn(Time, &Arc<str>) -> D + Send + Sync;

pub(crate) struct Watched<D> {
    pool: AnyPool,
    label: Arc<str>,
    /// It never changes, unlike `max_size`.
    min_idle: usize,
    pub(crate) recorder: Arc<Recorder<D>>,
}

impl<D: Distribution> Watch<D> {
    pub(crate) fn new(
        pools: Pools,
        make: impl Fn(Time, &Arc<str>) -> D + Send + Sync + 'static,
    ) -> Self {
        let watch = Self {
            pools,
            make: Box::new(make),
            watched: Mutex::default(),
        };
        watch.look();
        watch
    }

    /// Attaches a recorder to each pool that has none yet, and forgets the pools that are gone.
    pub(crate) fn look(&self) -> Vec<Arc<Watched<D>>> {
        let before = self.lock().clone();
        let gone: Vec<_> = before.iter().filter(|one| !one.is_alive()).collect();
        let mut found = self.pools.now();
        found.retain(is_alive);

        let mut watched = self.lock();
        watched.retain(|one| !gone.iter().any(|gone| Arc::ptr_eq(gone, one)));
        let known = watched.len();
        for pool in found {
            if !watched.iter().any(|one| one.pool.number() == pool.number()) {
                let label = free_label(pool.name(), &watched);
                watched.push(Arc::new(self.start(pool, label)));
            }
        }
        let all = watched.clone();
        drop(watched);
        // Another thread that looks at this moment may see a pool whose recorder is attached only
        // now.
        for one in all.iter().skip(known) {
            one.pool.attach(one.observer());
        }
        all
    }

    /// Returns the state of each pool, by one `status()` per pool.
    pub(crate) fn snapshots(&self) -> Vec<(Snapshot, Arc<Recorder<D>>)> {
        let all = self.look();
        let snapshots = all.iter().filter_map(|one| {
            let fleet = self.pools.fleet_of(one.pool.number());
            one.snapshot(fleet)
        });
        snapshots.collect()
    }

    fn start(&self, pool: AnyPool, label: Arc<str>) -> Watched<D> {
        Watched {
            min_idle: pool.config().map_or(0, |config| config.min_idle),
            recorder: Arc::new(Recorder::new(|time| (self.make)(time, &label))),
            pool,
            label,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Watched<D>>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Distribution> Drop for Watch<D> {
    fn drop(&mut self) {
        for one in &*self.lock() {
            one.pool.detach(&one.observer());
        }
    }
}

impl<D: Distribution> fmt::Debug for Watch<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let watched = self.lock().clone();
        f.debug_list()
            .entries(watched.iter().map(|one| &one.label))
            .finish()
    }
}

impl<D: Distribution> Watched<D> {
    fn snapshot(&self, fleet: Option<Fleet>) -> Option<(Snapshot, Arc<Recorder<D>>)> {
        let snapshot = Snapshot {
            label: Arc::clone(&self.label),
            status: self.pool.status()?,
            health: self.pool.health()?,
            min_idle: self.min_idle,
            fleet,
        };
        Some((snapshot, Arc::clone(&self.recorder)))
    }

    fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.recorder) as _
    }

    fn is_alive(&self) -> bool {
        is_alive(&self.pool)
    }
}

fn is_alive(pool: &AnyPool) -> bool {
    pool.breaker_state().is_some()
}

/// Returns the name, or the name with the first number that makes it different from all labels.
fn free_label<D>(name: &str, watched: &[Arc<Watched<D>>]) -> Arc<str> {
    let is_free = |label: &str| watched.iter().all(|one| &*one.label != label);
    if is_free(name) {
        return name.into();
    }
    let mut numbered = (2..).map(|number| format!("{name}#{number}"));
    let label = numbered.find(|label| is_free(label));
    label.map_or_else(|| name.into(), Arc::from)
}

#[cfg(test)]
mod tests;
