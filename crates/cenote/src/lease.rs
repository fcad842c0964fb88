//! The lease: the right to use one resource, and the way out.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::breaker::Failure;
use crate::driver;
use crate::guarded::guarded_now;
use crate::ledger::{Condition, Grant, Manner, SlotNo, Work};
use crate::manager::Manager;
use crate::observer::{Callback, CallbackFailed, Detached, Discarded, Released, ReturnedLate};
use crate::rt;
use crate::shared::{Evidence, Place, Shared};

/// A resource, lent. It goes back when this is dropped: in any thread, with or without a runtime.
///
/// It derefs to the resource. What can be asked of the lease itself are associated functions, so that they never hide a method of the
/// resource: `Lease::id(&lease)`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::{Lease, Pool};
///
/// let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).build()?;
/// let mut lease = pool.acquire().await?;
/// lease.push_str("used");
/// assert_eq!(Lease::uses(&lease), 1);
/// drop(lease);
/// assert_eq!(pool.status().idle, 1);
/// # Ok(()) }
/// ```
#[must_use = "a lease that is not kept goes back at once"]
pub struct Lease<M: Manager + 'static> {
    shared: Arc<Shared<M>>,
    /// Present until the lease ends.
    resource: Option<M::Resource>,
    slot: SlotNo,
    id: u64,
    opened_at: Instant,
    uses: u64,
    site: &'static Location<'static>,
}

impl<M: Manager + 'static> Lease<M> {
    pub(crate) fn new(
        shared: Arc<Shared<M>>,
        grant: Grant<M::Resource>,
        site: &'static Location<'static>,
    ) -> Self {
        let Grant {
            slot,
            resource,
            id,
            opened_at,
            uses,
            ..
        } = grant;
        Self {
            shared,
            resource: Some(resource),
            slot,
            id,
            opened_at,
            uses,
            site,
        }
    }

    /// The number of the resource in its pool, from 1. Never used again.
    pub fn id(this: &Self) -> u64 {
        this.id
    }

    /// When the resource was opened.
    pub fn opened_at(this: &Self) -> Instant {
        this.opened_at
    }

    /// How old the resource is.
    pub fn age(this: &Self) -> Duration {
        rt::now().saturating_duration_since(this.opened_at)
    }

    /// How often it has been lent, this time included.
    pub fn uses(this: &Self) -> u64 {
        this.uses
    }

    /// Where this lease was acquired.
    pub fn site(this: &Self) -> &'static Location<'static> {
        this.site
    }

    /// Says what this lease is for: shown wherever its holder is named.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use cenote::{Lease, Pool};
    /// # let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(())).build()?;
    /// let lease = pool.acquire().await?;
    /// Lease::label(&lease, "nightly report");
    /// assert_eq!(pool.leases()[0].label.as_deref(), Some("nightly report"));
    /// # Ok(()) }
    /// ```
    pub fn label(this: &Self, label: impl Into<Cow<'static, str>>) {
        let label = label.into();
        let before = this.shared.lock().set_label(this.slot, Some(label));
        drop(before);
    }

    /// Ends the lease and closes the resource: for one that is known to be bad.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// use cenote::{Lease, Reason};
    ///
    /// Lease::discard(pool.acquire().await?);
    /// assert_eq!(pool.status().closed.by(Reason::Discarded), 1);
    /// # Ok(()) }
    /// ```
    pub fn discard(mut this: Self) {
        if let Some(resource) = this.resource.take() {
            this.give_back(resource, Condition::Discarded, Manner::Dropped);
        }
    }

    /// Takes the resource out of the pool for good. Its slot is free at once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// let text: String = cenote::Lease::detach(pool.acquire().await?);
    /// assert_eq!(pool.status().total, 0);
    /// # drop(text);
    /// # Ok(()) }
    /// ```
    pub fn detach(mut this: Self) -> M::Resource {
        let resource = this
            .resource
            .take()
            .expect("a lease has its resource until it ends");
        let orders = this.shared.lock().detach(this.slot, rt::now());
        let (pool, id, site) = (&*this.shared.name, this.id, this.site);
        let event = Detached { pool, id, site };
        this.shared
            .observers
            .tell(|observer| observer.detached(&event));
        this.shared.carry_out(orders, Place::Drop);
        resource
    }

    /// Returns the resource politely: what must be done before its next use (cleaning, a check, a hook, closing) is done here, and not
    /// in a task of the pool. When this ends the resource is with the next user, idle, or closed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// cenote::Lease::release(pool.acquire().await?).await;
    /// assert_eq!(pool.status().idle, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropped midway, it leaves what remains to be done to the pool. Nothing is lost.
    pub async fn release(mut this: Self) {
        let Some(mut resource) = this.resource.take() else {
            return;
        };
        let condition = this.inspect(&mut resource);
        let work = this.give_back(resource, condition, Manner::Polite);
        if let Some(work) = work {
            let mut rest = Rest(Some(Box::pin(driver::run(&this.shared, work))));
            poll_fn(|context| rest.poll(context)).await;
        }
    }

    /// What does it look like? User code, so it may panic; then nobody can tell, and it is broken.
    fn inspect(&self, resource: &mut M::Resource) -> Condition {
        let Shared {
            manager,
            limits,
            hooks,
            ..
        } = &*self.shared;
        let seen = guarded_now(|| {
            (
                manager.is_broken(resource),
                manager.needs_cleaning(resource),
            )
        });
        match seen {
            Ok((true, _)) => Condition::Broken,
            Ok((false, clean))
                if clean || limits.check_on_return || hooks.before_release.is_some() =>
            {
                Condition::Dirty { clean }
            }
            Ok((false, _)) => Condition::Good,
            Err(mishap) => {
                let pool = &*self.shared.name;
                let message = &mishap.to_string();
                let event = CallbackFailed {
                    pool,
                    id: self.id,
                    callback: Callback::Inspect,
                    message,
                };
                self.shared
                    .observers
                    .tell(|observer| observer.callback_failed(&event));
                Condition::Broken
            }
        }
    }

    fn give_back(
        &self,
        resource: M::Resource,
        condition: Condition,
        manner: Manner,
    ) -> Option<Work<M::Resource>> {
        let now = rt::now();
        let shared = &self.shared;
        let (returned, orders) = shared
            .lock()
            .give_back(self.slot, resource, condition, manner, now);
        if shared.observers.any() {
            self.tell(condition, returned.held, returned.late);
        }
        shared.carry_out(orders, Place::Drop);
        match condition {
            Condition::Good => {
                let probe = returned.probe;
                shared.report(Evidence::Accepted { probe }, Place::Drop);
            }
            Condition::Broken if returned.refused => {
                shared.report(Evidence::Failed(Failure::Return), Place::Drop);
            }
            // Not known before it is cleaned; and neither a holder who discards it nor what was retired says that the backend is bad.
            Condition::Broken | Condition::Dirty { .. } | Condition::Discarded => {}
        }
        returned.work
    }

    fn tell(&self, condition: Condition, held: Duration, late: bool) {
        let (pool, id, site) = (&*self.shared.name, self.id, self.site);
        let observers = &self.shared.observers;
        observers.tell(|observer| {
            observer.released(&Released {
                pool,
                id,
                held,
                site,
            })
        });
        if condition == Condition::Discarded {
            observers.tell(|observer| observer.discarded(&Discarded { pool, id, site }));
        }
        if late {
            observers.tell(|observer| {
                observer.returned_late(&ReturnedLate {
                    pool,
                    id,
                    held,
                    site,
                })
            });
        }
    }
}

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What remains to be done for a polite return. Dropped midway, it goes to the pool.
struct Rest(Option<Job>);

impl Rest {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Out while it runs: what has panicked is not run again.
        let Some(mut job) = self.0.take() else {
            return Poll::Ready(());
        };
        let poll = job.as_mut().poll(context);
        if poll.is_pending() {
            self.0 = Some(job);
        }
        poll
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        if let Some(job) = self.0.take() {
            rt::spawn(job);
        }
    }
}

impl<M: Manager + 'static> Drop for Lease<M> {
    fn drop(&mut self) {
        if let Some(mut resource) = self.resource.take() {
            let condition = self.inspect(&mut resource);
            self.give_back(resource, condition, Manner::Dropped);
        }
    }
}

impl<M: Manager + 'static> Deref for Lease<M> {
    type Target = M::Resource;

    fn deref(&self) -> &M::Resource {
        self.resource
            .as_ref()
            .expect("a lease has its resource until it ends")
    }
}

impl<M: Manager + 'static> DerefMut for Lease<M> {
    fn deref_mut(&mut self) -> &mut M::Resource {
        self.resource
            .as_mut()
            .expect("a lease has its resource until it ends")
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
            .field("id", &self.id)
            .field("site", &format_args!("{}", self.site))
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}
