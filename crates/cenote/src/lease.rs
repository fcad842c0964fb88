//! The lease: the right to use one resource, and the way out.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::driver;
use crate::ledger::Manner;
use crate::manager::Manager;
use crate::pooled::{Left, Pooled};
use crate::rt;

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
    /// Present until the lease ends.
    pooled: Option<Box<Pooled<M>>>,
}

impl<M: Manager + 'static> Lease<M> {
    pub(crate) fn new(pooled: Box<Pooled<M>>) -> Self {
        Self {
            pooled: Some(pooled),
        }
    }

    /// The number of the resource in its pool, from 1. Never used again.
    pub fn id(this: &Self) -> u64 {
        this.pooled().id
    }

    /// When the resource was opened.
    pub fn opened_at(this: &Self) -> Instant {
        this.pooled().opened_at().instant()
    }

    /// How old the resource is.
    pub fn age(this: &Self) -> Duration {
        rt::now().saturating_duration_since(this.pooled().opened_at())
    }

    /// How often it has been lent, this time included.
    pub fn uses(this: &Self) -> u64 {
        this.pooled().uses
    }

    /// Where this lease was acquired.
    pub fn site(this: &Self) -> &'static Location<'static> {
        this.pooled().site
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
        this.pooled().label(Box::new(label.into()));
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
        if let Some(pooled) = this.pooled.take() {
            pooled.discard();
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
        let pooled = this
            .pooled
            .take()
            .expect("a lease has its resource until it ends");
        pooled.detach()
    }

    /// Returns the resource politely: what must be done before its next use (cleaning, a check, a hook, closing) is done here, and not
    /// in a task of the pool. When this ends the resource is with the next user, idle, or closed.
    ///
    /// Where somebody waited for it, this also yields once: many runtimes let the one who was woken run next on this very thread, and what is
    /// computed here after a plain drop would keep them waiting, resource in hand.
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
        let Some(pooled) = this.pooled.take() else {
            return;
        };
        match pooled.end(Manner::Polite) {
            Left::Nothing => {}
            Left::ServedAnother => make_way().await,
            Left::Work(shared, work) => {
                let mut rest = Rest(Some(Box::pin(driver::run(&shared, work))));
                poll_fn(|context| rest.poll(context)).await;
            }
        }
    }

    fn pooled(&self) -> &Pooled<M> {
        self.pooled
            .as_ref()
            .expect("a lease has its resource until it ends")
    }
}

/// Lets others run first.
async fn make_way() {
    let mut made = false;
    poll_fn(|context| {
        if mem::replace(&mut made, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
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
    #[inline]
    fn drop(&mut self) {
        if let Some(pooled) = self.pooled.take() {
            pooled.end(Manner::Dropped);
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
        let pooled = self.pooled.as_mut();
        &mut pooled
            .expect("a lease has its resource until it ends")
            .resource
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
