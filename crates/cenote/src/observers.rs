//! The observers of one pool. They come and go while it lives.

use std::mem;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::event::{Acquired, Observer, Released};
use crate::log::Log;
use crate::manager::Manager;
use crate::pool::Pool;
use crate::registry::Living;
use crate::rt::sync::{AtomicU64, Ordering, PoisonError, SpinLock};

impl<M: Manager + 'static> Pool<M> {
    /// Adds an observer to the living pool. It hears the events from now on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use cenote::event::{Acquired, Observer};
    ///
    /// #[derive(Default)]
    /// struct Count(AtomicU64);
    ///
    /// impl Observer for Count {
    ///     fn acquired(&self, _: &Acquired<'_>) {
    ///         self.0.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// }
    ///
    /// let count = Arc::new(Count::default());
    /// let observer: Arc<dyn Observer> = count.clone();
    /// drop(pool.acquire().await?);
    /// pool.attach(Arc::clone(&observer));
    /// drop(pool.acquire().await?);
    /// assert!(pool.detach(&observer));
    /// drop(pool.acquire().await?);
    /// assert_eq!(count.0.load(Ordering::Relaxed), 1);
    /// # Ok(()) }
    /// ```
    pub fn attach(&self, observer: Arc<dyn Observer>) {
        if let Some(annex) = self.annex() {
            annex.attach(Arc::clone(&observer));
        }
        Living::attach(&*self.shared, observer);
    }

    /// Removes an observer. An event that is being raised may still reach it. Returns whether it
    /// was attached. [`attach`](Pool::attach) has an example.
    pub fn detach(&self, observer: &Arc<dyn Observer>) -> bool {
        if let Some(annex) = self.annex() {
            annex.detach(observer);
        }
        Living::detach(&*self.shared, observer)
    }
}

pub(crate) struct Observers {
    pool: Arc<str>,
    /// The version of the present audience, or zero if it is empty. Every trip reads it, without a
    /// lock.
    version: AtomicU64,
    /// Replaced by each change, so that events are raised without the lock.
    present: SpinLock<Arc<Audience>>,
    /// How often it was changed.
    changes: Mutex<u64>,
    log: Log,
}

/// The observers at one moment.
pub(crate) struct Audience {
    pool: Arc<str>,
    all: Vec<Arc<dyn Observer>>,
    version: u64,
}

impl Observers {
    pub(crate) fn new(pool: Arc<str>, all: Vec<Arc<dyn Observer>>) -> Self {
        let audience = Audience::new(&pool, all, 1);
        Self {
            pool,
            version: AtomicU64::new(audience.version),
            present: SpinLock::new(Arc::new(audience)),
            changes: Mutex::new(1),
            log: Log::default(),
        }
    }

    /// Returns whether there is an observer. If not, nothing is prepared for one.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.version.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn attach(&self, observer: Arc<dyn Observer>) {
        self.change(|all| all.push(observer));
    }

    /// Returns whether it was attached.
    pub(crate) fn detach(&self, observer: &Arc<dyn Observer>) -> bool {
        let address = |one: &Arc<dyn Observer>| Arc::as_ptr(one).cast::<()>();
        let mut found = false;
        self.change(|all| {
            let place = all.iter().position(|one| address(one) == address(observer));
            found = place.map(|place| all.remove(place)).is_some();
        });
        found
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<dyn Observer>>)) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        *changes += 1;
        let mut all = self.audience().all.clone();
        change(&mut all);
        let audience = Audience::new(&self.pool, all, *changes);
        let version = audience.version;
        let before = mem::replace(&mut *self.present.lock(), Arc::new(audience));
        self.version.store(version, Ordering::Relaxed);
        drop(changes);
        drop(before);
    }

    pub(crate) fn audience(&self) -> Arc<Audience> {
        Arc::clone(&self.present.lock())
    }

    /// Returns the present audience, which is nearly always the one that was present before.
    pub(crate) fn audience_after(&self, before: Option<Arc<Audience>>) -> Option<Arc<Audience>> {
        let version = self.version.load(Ordering::Relaxed);
        let before = before.filter(|audience| audience.version == version);
        (version > 0).then(|| before.unwrap_or_else(|| self.audience()))
    }

    pub(crate) fn pool(&self) -> &str {
        &self.pool
    }

    /// Writes lines. A subscriber is user code, and a panic in it is dropped.
    #[cold]
    pub(crate) fn write(&self, write: impl FnOnce(&Log)) {
        let _ = catch_unwind(AssertUnwindSafe(|| write(&self.log)));
    }

    #[cold]
    pub(crate) fn tell(&self, event: impl Fn(&dyn Observer)) {
        self.audience().tell(event);
    }
}

impl Audience {
    fn new(pool: &Arc<str>, all: Vec<Arc<dyn Observer>>, version: u64) -> Self {
        Self {
            pool: Arc::clone(pool),
            version: if all.is_empty() { 0 } else { version },
            all,
        }
    }

    /// Raises an event. A panic in one observer does not keep the others from hearing.
    fn tell(&self, event: impl Fn(&dyn Observer)) {
        let mut rest = self.all.iter();
        // The panic hook has reported a panic already.
        while catch_unwind(AssertUnwindSafe(|| {
            for observer in rest.by_ref() {
                event(observer.as_ref());
            }
        }))
        .is_err()
        {}
    }

    pub(crate) fn acquired(&self, id: u64, waited: Duration, site: &'static Location<'static>) {
        let pool = &*self.pool;
        let event = Acquired {
            pool,
            id,
            waited,
            site,
        };
        self.tell(|observer| observer.acquired(&event));
    }

    pub(crate) fn released(&self, id: u64, held: Duration, site: &'static Location<'static>) {
        let pool = &*self.pool;
        let event = Released {
            pool,
            id,
            held,
            site,
        };
        self.tell(|observer| observer.released(&event));
    }
}
