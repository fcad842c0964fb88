//! The lease: the right to use one resource, and the ways to end it.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::time::{Duration, Instant};

use crate::held_slot::HeldSlot;
use crate::ledger::{Condition, LabelParts, Manner};
use crate::manager::{LeaseEnd, Manager};
use crate::shell::kind::Threads;
use crate::shell::pooled::Pooled;
#[cfg(not(cenote_model))]
use crate::shell::pooled::Stay;
use crate::shell::release::release;
use crate::shell::uppers::Kept;
use crate::status::Meter;
use crate::time;

/// A resource that is lent. It goes back to its pool when the lease is dropped: on any thread, with
/// or without a runtime.
///
/// It dereferences to the resource. Its own functions are called as `Lease::id(&lease)`, so that
/// they never hide a method of the resource.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use cenote::{Lease, Pool};
///
/// let pool = Pool::from_fn(async || Ok::<_, &str>(String::new())).build()?;
/// let mut lease = pool.acquire().await?;
/// lease.push_str("used");
/// assert_eq!((Lease::id(&lease), Lease::uses(&lease)), (1, 1));
/// assert_eq!(Lease::site(&lease).file(), file!());
/// assert!(Lease::age(&lease) < Duration::from_secs(60));
/// assert_eq!(Lease::opened_at(&lease).elapsed().as_secs(), 0);
/// drop(lease);
/// assert_eq!(pool.status().idle, 1);
/// # Ok(()) }
/// ```
#[must_use = "a lease that is not kept goes back at once"]
pub struct Lease<M: Manager + 'static> {
    /// Present until the lease ends.
    pooled: Option<Box<Pooled<Threads<M>>>>,
}

impl<M: Manager + 'static> Lease<M> {
    /// Returns the number of the resource in its pool, from 1. No number is used twice.
    pub fn id(this: &Self) -> u64 {
        this.pooled().id
    }

    /// Returns when the resource was opened.
    pub fn opened_at(this: &Self) -> Instant {
        this.pooled().opened_at().instant()
    }

    /// Returns how old the resource is.
    pub fn age(this: &Self) -> Duration {
        time::now().saturating_duration_since(this.pooled().opened_at())
    }

    /// Returns how often the resource was lent, this lease included.
    pub fn uses(this: &Self) -> u64 {
        this.pooled().uses
    }

    /// Returns the line of code that acquired this lease.
    pub fn site(this: &Self) -> &'static Location<'static> {
        this.pooled().site
    }

    /// Says what this lease is for. The label is shown wherever the holder is named: in
    /// [`Pool::leases`](crate::Pool::leases), in timeout errors and in leak reports.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use cenote::{Lease, Pool};
    /// # let pool = Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let lease = pool.acquire().await?;
    /// Lease::label(&lease, "nightly report");
    /// assert_eq!(pool.leases()[0].label.as_deref(), Some("nightly report"));
    /// # Ok(()) }
    /// ```
    pub fn label(this: &Self, label: impl Into<Cow<'static, str>>) {
        this.pooled().label(Box::new(label.into().into()));
    }

    /// As [`label`](Lease::label). Reports show, beside the time that the lease is held, what
    /// `meter` says. [`Meter`] has an example.
    pub fn label_metered(this: &Self, label: impl Into<Cow<'static, str>>, meter: &Meter) {
        let (text, meter) = (label.into(), Some(meter.clone()));
        this.pooled().label(Box::new(LabelParts { text, meter }));
    }

    /// Ends the lease and closes the resource, because it is known to be bad.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use cenote::{CloseReason, Lease};
    ///
    /// Lease::discard(pool.acquire().await?);
    /// assert_eq!(pool.status().closes.by(CloseReason::Discarded), 1);
    /// # Ok(()) }
    /// ```
    pub fn discard(mut this: Self) {
        if let Some(pooled) = this.pooled.take() {
            pooled.come_back(Condition::Discarded, Manner::Dropped);
        }
    }

    /// Ends the lease, and tells the manager how.
    pub(crate) fn end(mut this: Self, end: LeaseEnd) {
        if let Some(pooled) = this.pooled.take() {
            pooled.end(end, Manner::Dropped);
        }
    }

    /// Takes the resource out of the pool for good. Its slot is free at once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(String::new())).build()?;
    /// let text: String = cenote::Lease::detach(pool.acquire().await?);
    /// assert_eq!((text.as_str(), pool.status().total), ("", 0));
    /// # Ok(()) }
    /// ```
    pub fn detach(mut this: Self) -> M::Resource {
        let pooled = this.pooled.take();
        pooled.expect(ENDED).detach()
    }

    /// Takes the resource out of the pool for good, and keeps its slot: for capacity that code
    /// outside of the pool uses, and that must count against `max_size`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(String::new())).max_size(1);
    /// # let pool = pool.build()?;
    /// let (text, slot) = cenote::Lease::hold_slot(pool.acquire().await?);
    /// slot.label("a pool of another library");
    /// assert_eq!(text, "");
    /// assert_eq!(pool.leases()[0].label.as_deref(), Some("a pool of another library"));
    /// assert!(pool.try_acquire()?.is_none(), "the only slot is held");
    /// drop(slot);
    /// assert_eq!((pool.status().total, pool.status().detached), (0, 1));
    /// # Ok(()) }
    /// ```
    pub fn hold_slot(mut this: Self) -> (M::Resource, HeldSlot<M>) {
        let pooled = this.pooled.take();
        pooled.expect(ENDED).hold_slot()
    }

    /// Ends the lease, and does here what must be done before the next use of the resource:
    /// cleaning, a check, a hook, closing. After a plain drop a task of the pool does it. When this
    /// returns, the resource is idle, lent to the next caller, or closed.
    ///
    /// Where a waiter was served, it yields once, so that the waiter can run before the code that
    /// follows.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// cenote::Lease::release(pool.acquire().await?).await;
    /// assert_eq!(pool.status().idle, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// If this future is dropped, a task of the pool does the rest. Nothing is lost.
    pub async fn release(mut this: Self) {
        if let Some(pooled) = this.pooled.take() {
            release(pooled).await;
        }
    }

    /// Keeps this lease for long. See [`second_level`](crate::second_level).
    pub(crate) fn keep(this: &mut Self) -> Kept<M> {
        this.pooled.as_mut().expect(ENDED).keep()
    }

    /// Whether the resource stays in its scope after a use that has ended in this way.
    #[cfg(not(cenote_model))]
    pub(crate) fn stay(this: &mut Self, end: LeaseEnd) -> Stay {
        this.pooled.as_mut().expect(ENDED).stay(end)
    }

    fn pooled(&self) -> &Pooled<Threads<M>> {
        self.pooled.as_ref().expect(ENDED)
    }
}

impl<M: Manager + 'static> From<Box<Pooled<Threads<M>>>> for Lease<M> {
    #[inline]
    fn from(pooled: Box<Pooled<Threads<M>>>) -> Self {
        Self {
            pooled: Some(pooled),
        }
    }
}

const ENDED: &str = "a lease has its resource until it ends";

impl<M: Manager + 'static> Drop for Lease<M> {
    #[inline]
    fn drop(&mut self) {
        if let Some(pooled) = self.pooled.take() {
            pooled.end(LeaseEnd::of_drop(), Manner::Dropped);
        }
    }
}

impl<M: Manager + 'static> Deref for Lease<M> {
    type Target = M::Resource;

    fn deref(&self) -> &M::Resource {
        &self.pooled().resource
    }
}

impl<M: Manager + 'static> DerefMut for Lease<M> {
    fn deref_mut(&mut self) -> &mut M::Resource {
        &mut self.pooled.as_mut().expect(ENDED).resource
    }
}

impl<M: Manager + 'static> AsRef<M::Resource> for Lease<M> {
    fn as_ref(&self) -> &M::Resource {
        self
    }
}

impl<M: Manager + 'static> AsMut<M::Resource> for Lease<M> {
    fn as_mut(&mut self) -> &mut M::Resource {
        self
    }
}

impl<M: Manager<Resource: fmt::Debug> + 'static> fmt::Debug for Lease<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("id", &self.pooled().id)
            .field("site", &format_args!("{}", self.pooled().site))
            .field("resource", &self.pooled().resource)
            .finish_non_exhaustive()
    }
}
