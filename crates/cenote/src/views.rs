//! A look inside a pool: the state of each slot, and the first waiters.

use std::fmt;
use std::panic::Location;
use std::time::Duration;

use crate::manager::Manager;
use crate::pool::Pool;
use crate::registry::Living;

/// The state of a slot. [`SlotView`] has an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SlotState {
    /// It holds nothing.
    Vacant,
    /// Its resource is being opened.
    Opening,
    /// Its resource is ready to be lent.
    Idle,
    /// Its resource is lent, or granted to a waiter.
    Leased,
    /// Its resource is being checked.
    Checking,
    /// Its resource has come back and is being cleaned.
    Cleaning,
    /// Its resource is being closed.
    Closing,
    /// It holds nothing, and is kept for a [`Permit`](crate::Permit).
    Reserved,
}

impl fmt::Display for SlotState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vacant => "vacant",
            Self::Opening => "opening",
            Self::Idle => "idle",
            Self::Leased => "leased",
            Self::Checking => "checking",
            Self::Cleaning => "cleaning",
            Self::Closing => "closing",
            Self::Reserved => "reserved",
        })
    }
}

/// One slot of a pool, from [`Pool::slots`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::status::SlotState;
///
/// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(2).build()?;
/// let _lease = pool.acquire().await?;
///
/// let slots = pool.slots();
/// assert_eq!((slots[0].number, slots[0].state, slots[0].id), (0, SlotState::Leased, Some(1)));
/// assert_eq!((slots[1].number, slots[1].state, slots[1].id), (1, SlotState::Vacant, None));
/// assert_eq!(slots[0].state.to_string(), "leased");
/// assert!(slots[0].since.is_some());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SlotView {
    /// The number of the slot, from 0.
    pub number: usize,
    /// Its state.
    pub state: SlotState,
    /// The number of its resource, if it holds one.
    pub id: Option<u64>,
    /// How long it has been in this state. `None` for a slot that was never used.
    pub since: Option<Duration>,
}

/// A caller that waits, from [`Pool::waiters`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WaiterView {
    /// The line of code that called acquire.
    pub site: &'static Location<'static>,
    /// How long it has waited.
    pub waited: Duration,
}

impl<M: Manager + 'static> Pool<M> {
    /// Returns the slots of the pool in the order of their numbers. There are as many as
    /// `max_size`, and more while a pool that shrinks has more resources. The slots of an
    /// [annex](crate::Builder::annex) are not among them. [`SlotView`] has an example.
    pub fn slots(&self) -> Vec<SlotView> {
        Living::slots(&*self.shared)
    }

    /// Returns the callers that wait, first in line first, `limit` of them at most. It takes no
    /// longer for a longer queue. With an [annex](crate::Builder::annex) there are two queues, and
    /// the callers that have waited longest come first.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
    /// let _held = pool.acquire().await?;
    /// let late = pool.clone();
    /// tokio::spawn(async move { drop(late.acquire().await) });
    /// tokio::task::yield_now().await;
    ///
    /// let waiters = pool.waiters(10);
    /// assert_eq!((waiters.len(), waiters[0].site.file()), (1, file!()));
    /// assert!(waiters[0].waited.as_secs() < 60);
    /// # Ok(()) }
    /// ```
    pub fn waiters(&self, limit: usize) -> Vec<WaiterView> {
        let ask = |part: &Self| Living::waiters(&*part.shared, limit);
        self.sum(ask, |mut own, annex| {
            own.extend(annex);
            own.sort_by_key(|waiter| std::cmp::Reverse(waiter.waited));
            own.truncate(limit);
            own
        })
    }

    /// Returns the number of the pool, which no other pool of this process has.
    ///
    /// ```
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let mut all = cenote::registry::pools().into_iter();
    /// let same = all.find(|any| any.number() == pool.number()).unwrap();
    /// assert_eq!(same.name(), pool.name());
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    pub fn number(&self) -> u64 {
        self.shared.own.number
    }

    /// Returns whether the pool is suspended.
    ///
    /// ```
    /// let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// pool.suspend();
    /// assert!(pool.is_suspended());
    /// pool.resume();
    /// assert!(!pool.is_suspended());
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    pub fn is_suspended(&self) -> bool {
        self.shared.ledger().is_suspended()
    }
}
