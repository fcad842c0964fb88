//! The pools of all keys: the ways to acquire.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use cenote::{Config, Lease, Manager, Pool, SharedUpkeep};
use tokio::time::Instant;

use crate::builder::{Builder, Customize, ForKey};
use crate::error::{AcquireError, UsedUp};
use crate::key::Entry;
use crate::keyed::{Keyed, ManagerError};
use crate::keys::Keys;
use crate::room::Room;

/// The outcome of an acquire.
pub type Acquire<M> = Result<Lease<Keyed<M>>, AcquireError<<M as Manager>::Error>>;

/// One pool per key, and one budget for all. It is a cheap handle: clone it and share it.
///
/// The pools close when the last handle is dropped. The [crate](crate) has an example.
pub struct Pools<K, M: Manager + 'static> {
    pub(crate) shared: Arc<Shared<K, M>>,
}

pub(crate) struct Shared<K, M: Manager + 'static> {
    pub(crate) keys: Keys<K, M>,
    pub(crate) room: Arc<Room>,
    making: Making<K, M>,
}

/// How the pool of a key is made.
pub(crate) struct Making<K, M: Manager + 'static> {
    pub(crate) for_key: ForKey<K, M>,
    pub(crate) config: Config,
    pub(crate) customize: Customize<K, M>,
    pub(crate) upkeep: SharedUpkeep<Keyed<M>>,
}

impl<K, M> Pools<K, M>
where
    K: Hash + Eq + Clone + fmt::Debug + Send + Sync + 'static,
    M: Manager + 'static,
{
    /// Begins to build pools. `for_key` makes the manager of a key, when the key is first used, and
    /// again if it is used after it was dropped. [`Builder`] has an example.
    pub fn builder(for_key: impl Fn(&K) -> M + Send + Sync + 'static) -> Builder<K, M> {
        Builder::new(Box::new(for_key))
    }

    pub(crate) fn new(making: Making<K, M>, room: Arc<Room>) -> Self {
        Self {
            shared: Arc::new(Shared {
                keys: Keys::new(),
                room,
                making,
            }),
        }
    }

    /// Lends a resource of `key`, within the `acquire_timeout`.
    ///
    /// Callers of one key are served in the order of their arrival. If the key has no resource to
    /// lend and all places are held, the least recently used idle resource of another key is
    /// closed. If none is idle, a key that holds more places gives one up when a lease comes back.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pools = cenote_keyed::doc::pools();
    /// let lease = pools.acquire(&"tenant 1").await?;
    /// assert_eq!(lease.len(), 8, "it dereferences to the resource");
    /// assert_eq!(pools.leases()[0].0, "tenant 1");
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`cenote::Pool::acquire`].
    #[track_caller]
    pub fn acquire(&self, key: &K) -> impl Future<Output = Acquire<M>> + Send + use<K, M> {
        let (entry, site) = (self.entry(key), Location::caller());
        async move {
            let entry = entry?;
            let lease = entry.pool.acquire_at(site, None).await;
            lease.map_err(|error| why(&entry, error))
        }
    }

    /// Lends a resource of `key` within `limit`, in place of the `acquire_timeout`. `None`: for
    /// ever.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pools = cenote_keyed::doc::pools();
    /// use std::time::Duration;
    /// use cenote_keyed::AcquireError;
    ///
    /// let _held = (pools.acquire(&"a").await?, pools.acquire(&"b").await?); // all there are
    /// let late = pools.acquire_within(&"c", Duration::from_millis(5)).await;
    /// let Err(AcquireError::UsedUp(seen)) = late else { panic!() };
    /// assert_eq!((seen.total, seen.holders.len()), (2, 2));
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`cenote::Pool::acquire`].
    #[track_caller]
    pub fn acquire_within(
        &self,
        key: &K,
        limit: impl Into<Option<Duration>>,
    ) -> impl Future<Output = Acquire<M>> + Send + 'static {
        let (entry, site) = (self.entry(key), Location::caller());
        let limit = limit.into().unwrap_or(FOR_EVER).min(FOR_EVER);
        #[expect(clippy::disallowed_methods, reason = "the deadline begins here")]
        let deadline = (Instant::now() + limit).into_std();
        async move {
            let entry = entry?;
            let lease = entry.pool.acquire_at(site, Some(deadline)).await;
            lease.map_err(|error| why(&entry, error))
        }
    }

    /// Lends a resource of `key` that is idle and fit now. Returns `None` if there is none. If
    /// there is room, an open is begun in the background, and takes no place from another key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pools = cenote_keyed::doc::pools();
    /// assert!(pools.try_acquire(&"a")?.is_none(), "nothing was opened yet");
    /// drop(pools.acquire(&"a").await?);
    /// assert!(pools.try_acquire(&"a")?.is_some());
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn try_acquire(&self, key: &K) -> Result<Option<Lease<Keyed<M>>>, AcquireError<M::Error>> {
        let entry = self.entry(key)?;
        let lease = entry.pool.try_acquire_at(Location::caller());
        lease.map_err(|error| why(&entry, error))
    }

    /// Returns the pool of `key`, for all that a pool can do: scopes, closures, the breaker, views.
    ///
    /// Do not keep the handle for long. It does not keep the key: after the key was dropped, the
    /// opens of such a pool take free places only, and callers of [`acquire`](Pools::acquire) use
    /// another pool.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pools = cenote_keyed::doc::pools();
    /// let pool = pools.pool(&"a")?;
    /// let length = pool.with(async |text| text.len()).await?;
    /// assert_eq!((length, pool.name()), (1, "keyed[\"a\"]"));
    /// # Ok(()) }
    /// ```
    pub fn pool(&self, key: &K) -> Result<Pool<Keyed<M>>, AcquireError<M::Error>> {
        Ok(self.entry(key)?.pool.clone())
    }

    #[inline]
    fn entry(&self, key: &K) -> Result<Arc<Entry<K, M>>, AcquireError<M::Error>> {
        match self.shared.keys.find(key) {
            Some(entry) => Ok(entry),
            None => self.make(key),
        }
    }

    #[cold]
    fn make(&self, key: &K) -> Result<Arc<Entry<K, M>>, AcquireError<M::Error>> {
        let Shared { keys, room, making } = &*self.shared;
        let share = room.share();
        let open_timeout = making.config.open_timeout;
        let manager = Keyed::new((making.for_key)(key), Arc::clone(&share), open_timeout);
        let name = making.config.name.as_deref().unwrap_or("keyed");
        let config = Config {
            name: Some(format!("{name}[{key:?}]")),
            open_timeout: None,
            ..making.config.clone()
        };
        let pool = Pool::builder(manager).config(config);
        let pool = pool.shared_upkeep(&making.upkeep);
        let pool = (making.customize)(key, pool).build();
        let pool = pool.map_err(AcquireError::Config)?;
        let added = keys.add(Entry::new(key.clone(), pool, share));
        added.ok_or(AcquireError::Closed)
    }
}

/// Finds out whether the budget is to blame.
fn why<K, M>(
    entry: &Entry<K, M>,
    error: cenote::AcquireError<ManagerError<M::Error>>,
) -> AcquireError<M::Error>
where
    K: fmt::Debug + Send + Sync + 'static,
    M: Manager + 'static,
{
    let timed_out = match error {
        cenote::AcquireError::TimedOut(timed_out) => timed_out,
        error => return AcquireError::Pool(error),
    };
    let room = entry.share.room();
    let (total, held) = room.read(|budget| (budget.total(), budget.held()));
    if held < total || timed_out.status().opening == 0 {
        return AcquireError::Pool(cenote::AcquireError::TimedOut(timed_out));
    }
    let (keys, holders) = room.holders(HOLDERS);
    AcquireError::UsedUp(Box::new(UsedUp {
        key: format!("{:?}", entry.key),
        total,
        held,
        waiting: room.read(|budget| budget.tickets()),
        keys,
        holders,
        timed_out,
    }))
}

/// The longest time that a limit can have.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// How many keys an error names.
const HOLDERS: usize = 10;

impl<K, M: Manager + 'static> Clone for Pools<K, M> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K, M: Manager + 'static> fmt::Debug for Pools<K, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pools").finish_non_exhaustive()
    }
}
