//! The observers of one pool. They come and go while it lives.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::event::Observer;
use crate::manager::Manager;
use crate::pool::Pool;
use crate::registry::Living;
use crate::rt::sync::{AtomicBool, Ordering, PoisonError};

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
        Living::attach(&*self.shared, observer);
    }

    /// Removes an observer. An event that is being raised may still reach it. Returns whether it
    /// was attached. [`attach`](Pool::attach) has an example.
    pub fn detach(&self, observer: &Arc<dyn Observer>) -> bool {
        Living::detach(&*self.shared, observer)
    }
}

pub(crate) struct Observers {
    pool: Arc<str>,
    /// Whether there is one. Every trip reads it, without a lock.
    any: AtomicBool,
    /// Replaced by each change, so that events are raised without the lock.
    all: Mutex<Arc<[Arc<dyn Observer>]>>,
}

impl Observers {
    pub(crate) fn new(pool: Arc<str>, all: Vec<Arc<dyn Observer>>) -> Self {
        Self {
            pool,
            any: AtomicBool::new(!all.is_empty()),
            all: Mutex::new(all.into()),
        }
    }

    /// Returns whether there is an observer. If not, nothing is prepared for one.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
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
        let mut all = self.lock();
        let mut changed = all.to_vec();
        change(&mut changed);
        self.any.store(!changed.is_empty(), Ordering::Relaxed);
        let before = mem::replace(&mut *all, changed.into());
        drop(all);
        drop(before);
    }

    fn lock(&self) -> MutexGuard<'_, Arc<[Arc<dyn Observer>]>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pool(&self) -> &str {
        &self.pool
    }

    /// Raises an event. A panic in one observer does not keep the others from hearing.
    #[cold]
    pub(crate) fn tell(&self, event: impl Fn(&dyn Observer)) {
        let all = Arc::clone(&self.lock());
        for observer in &*all {
            // The panic hook has reported a panic already.
            let _ = catch_unwind(AssertUnwindSafe(|| event(observer.as_ref())));
        }
    }
}
