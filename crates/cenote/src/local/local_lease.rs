//! The lease of a pool that belongs to one thread.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::time::{Duration, Instant};

use super::one_thread::OneThread;
use crate::ledger::{Condition, LabelParts, Manner};
use crate::local_manager::LocalManager;
use crate::manager::LeaseEnd;
use crate::shell::pooled::Pooled;
use crate::shell::release::release;
use crate::status::Meter;
use crate::time;
use crate::with::Usable;

/// A resource that is lent by a [`LocalPool`](super::LocalPool). It goes back when it is dropped,
/// inside or outside of the `LocalSet`. Its functions are those of [`Lease`](crate::Lease).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::task::LocalSet::new().run_until(async {
/// use std::rc::Rc;
/// use cenote::local::{LocalLease, LocalPool};
///
/// let pool = LocalPool::from_fn(async || Ok::<_, &str>(Rc::new(7))).build()?;
/// let lease = pool.acquire().await?;
/// assert_eq!((**lease, LocalLease::id(&lease), LocalLease::uses(&lease)), (7, 1, 1));
/// LocalLease::label(&lease, "nightly report");
/// assert_eq!(pool.leases()[0].label.as_deref(), Some("nightly report"));
/// LocalLease::release(lease).await;
/// assert_eq!(pool.status().idle, 1);
/// # Ok(()) }).await }
/// ```
///
/// It cannot be sent to another thread:
///
/// ```compile_fail,E0277
/// fn send(lease: cenote::local::LocalLease<cenote::Closures<u8>>) -> impl Send {
///     lease
/// }
/// ```
#[must_use = "a lease that is not kept goes back at once"]
pub struct LocalLease<M: LocalManager + 'static> {
    /// Present until the lease ends.
    pooled: Option<Box<Pooled<OneThread<M>>>>,
}

impl<M: LocalManager + 'static> LocalLease<M> {
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

    /// Says what this lease is for. As [`Lease::label`](crate::Lease::label).
    pub fn label(this: &Self, label: impl Into<Cow<'static, str>>) {
        this.pooled().label(Box::new(label.into().into()));
    }

    /// As [`label`](LocalLease::label), with a meter. As
    /// [`Lease::label_metered`](crate::Lease::label_metered).
    pub fn label_metered(this: &Self, label: impl Into<Cow<'static, str>>, meter: &Meter) {
        let (text, meter) = (label.into(), Some(meter.clone()));
        this.pooled().label(Box::new(LabelParts { text, meter }));
    }

    /// Ends the lease and closes the resource, because it is known to be bad.
    pub fn discard(mut this: Self) {
        if let Some(pooled) = this.pooled.take() {
            pooled.come_back(Condition::Discarded, Manner::Dropped);
        }
    }

    /// Takes the resource out of the pool for good. Its slot is free at once.
    pub fn detach(mut this: Self) -> M::Resource {
        let pooled = this.pooled.take();
        pooled.expect(ENDED).detach()
    }

    /// Ends the lease, and does here what must be done before the next use of the resource. As
    /// [`Lease::release`](crate::Lease::release).
    ///
    /// # Cancel safety
    /// If this future is dropped, the upkeep task of the pool goes on with the rest. If there is no
    /// such task, because its `LocalSet` is gone, the resource is dropped.
    pub async fn release(mut this: Self) {
        if let Some(pooled) = this.pooled.take() {
            release(pooled).await;
        }
    }

    fn pooled(&self) -> &Pooled<OneThread<M>> {
        self.pooled.as_ref().expect(ENDED)
    }
}

const ENDED: &str = "a lease has its resource until it ends";

impl<M: LocalManager + 'static> From<Box<Pooled<OneThread<M>>>> for LocalLease<M> {
    #[inline]
    fn from(pooled: Box<Pooled<OneThread<M>>>) -> Self {
        let pooled = Some(pooled);
        Self { pooled }
    }
}

impl<M: LocalManager + 'static> Drop for LocalLease<M> {
    #[inline]
    fn drop(&mut self) {
        if let Some(pooled) = self.pooled.take() {
            pooled.end(LeaseEnd::of_drop(), Manner::Dropped);
        }
    }
}

impl<M: LocalManager + 'static> Usable for LocalLease<M> {
    type Resource = M::Resource;

    fn resource(&mut self) -> &mut M::Resource {
        self
    }

    fn end(mut self, end: LeaseEnd) {
        if let Some(pooled) = self.pooled.take() {
            pooled.end(end, Manner::Dropped);
        }
    }

    fn discard(self) {
        Self::discard(self);
    }
}

impl<M: LocalManager + 'static> Deref for LocalLease<M> {
    type Target = M::Resource;

    fn deref(&self) -> &M::Resource {
        &self.pooled().resource
    }
}

impl<M: LocalManager + 'static> DerefMut for LocalLease<M> {
    fn deref_mut(&mut self) -> &mut M::Resource {
        &mut self.pooled.as_mut().expect(ENDED).resource
    }
}

impl<M: LocalManager<Resource: fmt::Debug> + 'static> fmt::Debug for LocalLease<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalLease")
            .field("id", &self.pooled().id)
            .field("site", &format_args!("{}", self.pooled().site))
            .field("resource", &self.pooled().resource)
            .finish_non_exhaustive()
    }
}
