//! A bound lease: one that comes home to its scope while it is pinned, and to its pool otherwise.

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::Scope;
use super::seat::Seat;
use crate::acquire::{self, Patience};
use crate::error::AcquireError;
use crate::lease::Lease;
use crate::manager::Manager;
use crate::moment::Moment;
use crate::pool::Pool;
use crate::rt;

impl<M: Manager + 'static> Pool<M> {
    /// Lends the resource that is pinned in the caller's [scope](crate::scope()), or acquires one.
    ///
    /// A pinned resource that is in use is waited for, in order, within the pool's `acquire_timeout`: two futures of one scope that run
    /// at the same time never share it. What is not pinned is never waited for: another one is acquired. Outside any scope this is
    /// [`acquire`](Pool::acquire).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(2).build()?;
    /// let bound = pool.bind().await?;
    /// assert_eq!(pool.status().in_use, 1);
    /// drop(bound);
    /// assert_eq!(pool.status().idle, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future gives the place in line back.
    #[track_caller]
    pub fn bind(&self) -> impl Future<Output = Result<Bound<M>, BindError<M::Error>>> + Send {
        bind(self, Location::caller(), None)
    }

    /// As [`bind`](Pool::bind), for a caller at `site`, and before `deadline`. For a layer that knows its
    /// caller's line when it is called, and the deadline of the whole call when it is polled. `None`: within
    /// the pool's `acquire_timeout`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).max_size(1).build()?;
    /// use std::panic::Location;
    ///
    /// let site = Location::caller();
    /// let bound = pool.bind_at(site, pool.deadline()).await?;
    /// assert_eq!(pool.leases()[0].site, site);
    /// # drop(bound);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`bind`](Pool::bind).
    pub fn bind_at(
        &self,
        site: &'static Location<'static>,
        deadline: Option<Instant>,
    ) -> impl Future<Output = Result<Bound<M>, BindError<M::Error>>> + Send {
        bind(self, site, deadline.map(Moment::of))
    }

    /// When an acquire that begins now times out by the pool's `acquire_timeout`: for calls that consist of several acquires and must have
    /// one deadline. `None`: never.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(())).build()?;
    /// use std::time::Instant;
    ///
    /// assert!(pool.deadline().is_some_and(|deadline| deadline > Instant::now()));
    /// # Ok(()) }
    /// ```
    pub fn deadline(&self) -> Option<Instant> {
        deadline_of(self).map(Moment::instant)
    }
}

fn deadline_of<M: Manager>(pool: &Pool<M>) -> Option<Moment> {
    let limit = pool.shared.limits.acquire_timeout?;
    rt::now().checked_add(limit)
}

/// One deadline covers both waits: for the resource that is pinned in the scope, and for one of the pool.
async fn bind<M: Manager + 'static>(
    pool: &Pool<M>,
    site: &'static Location<'static>,
    deadline: Option<Moment>,
) -> Result<Bound<M>, BindError<M::Error>> {
    let seat = Scope::current().and_then(|scope| scope.seat(pool));
    let mut patience = deadline.map_or(Patience::Usual, Patience::Until);
    if let Some(seat) = seat.as_ref().filter(|seat| seat.is_taken()) {
        let deadline = deadline.or_else(|| deadline_of(pool));
        if let Some(bound) = wait_for(pool, seat, site, deadline).await? {
            return Ok(bound);
        }
        patience = deadline.map_or(Patience::For(None), Patience::Until);
    }
    let acquiring = acquire::acquire(&pool.shared, site, patience);
    let lease = acquiring.await.map_err(BindError::Acquire)?;
    Ok(Bound {
        lease: Some(lease),
        seat,
        seated: false,
    })
}

async fn wait_for<M: Manager + 'static>(
    pool: &Pool<M>,
    seat: &Arc<Seat<M>>,
    site: &'static Location<'static>,
    deadline: Option<Moment>,
) -> Result<Option<Bound<M>>, BindError<M::Error>> {
    let mut turn = Turn { seat, ticket: None };
    let mut asked: Option<Moment> = None;
    let mut timer = pin!(None);
    poll_fn(|context| {
        if let Poll::Ready(bound) = Seat::poll_take(seat, &mut turn.ticket, site, context) {
            return Poll::Ready(Ok(bound));
        }
        let asked = *asked.get_or_insert_with(rt::now);
        if timer.is_none() {
            timer.set(Some(rt::sleep_until(deadline)));
        }
        match timer.as_mut().as_pin_mut().map(|timer| timer.poll(context)) {
            Some(Poll::Ready(())) => Poll::Ready(Err(BindError::InUse {
                pool: Arc::clone(&pool.shared.name),
                waited: rt::now().saturating_duration_since(asked),
                site: seat.user().unwrap_or(site),
            })),
            Some(Poll::Pending) | None => Poll::Pending,
        }
    })
    .await
}

/// A place in line for the seat. Dropped before its end, it passes its turn on.
struct Turn<'a, M: Manager + 'static> {
    seat: &'a Seat<M>,
    ticket: Option<u64>,
}

impl<M: Manager + 'static> Drop for Turn<'_, M> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.seat.leave(ticket);
        }
    }
}

/// A lease that was taken by [`Pool::bind`]: exclusive, like any lease.
///
/// It derefs to its [`Lease`]. When it is dropped it rests in its scope if it is pinned there, and goes back to its pool otherwise. What can be
/// asked of it are associated functions, so that they never hide a method of the resource.
#[must_use = "what is not kept goes back at once"]
pub struct Bound<M: Manager + 'static> {
    /// Present until it ends.
    pub(super) lease: Option<Lease<M>>,
    seat: Option<Arc<Seat<M>>>,
    /// Is it the one that the seat is for?
    seated: bool,
}

impl<M: Manager + 'static> Bound<M> {
    pub(super) fn seated(lease: Lease<M>, seat: Arc<Seat<M>>) -> Self {
        Self {
            lease: Some(lease),
            seat: Some(seat),
            seated: true,
        }
    }

    /// Stands for a lease that goes from its seat straight to its pool.
    pub(super) fn nowhere() -> Self {
        Self {
            lease: None,
            seat: None,
            seated: false,
        }
    }

    /// Pins it once more: it stays in its scope until it is unpinned as often, or the scope ends. False, and nothing done, outside a
    /// scope and where another lease of this pool is pinned already.
    pub fn pin(this: &mut Self) -> bool {
        let Some(seat) = &this.seat else { return false };
        this.seated = seat.pin(this.seated, Lease::site(this));
        this.seated
    }

    /// Takes one pin away. After the last it goes back to its pool when it is dropped.
    pub fn unpin(this: &mut Self) {
        if let Some(seat) = this.seat.as_ref().filter(|_| this.seated) {
            seat.unpin();
        }
    }

    /// Does it belong to the seat of its scope: pinned, or just unpinned?
    pub fn is_pinned(this: &Self) -> bool {
        this.seated
    }

    /// Ends it and closes the resource: for one that is known to be bad. The next one to bind gets a fresh one.
    pub fn discard(mut this: Self) {
        if let Some(lease) = this.lease.take() {
            Lease::discard(lease);
        }
    }
}

impl<M: Manager + 'static> Drop for Bound<M> {
    fn drop(&mut self) {
        let lease = self.lease.take();
        match self.seat.take() {
            Some(seat) if self.seated => seat.come_home(lease),
            _ => drop(lease),
        }
    }
}

impl<M: Manager + 'static> Deref for Bound<M> {
    type Target = Lease<M>;

    fn deref(&self) -> &Lease<M> {
        self.lease.as_ref().expect("it has its lease until it ends")
    }
}

impl<M: Manager + 'static> DerefMut for Bound<M> {
    fn deref_mut(&mut self) -> &mut Lease<M> {
        self.lease.as_mut().expect("it has its lease until it ends")
    }
}

impl<M: Manager + 'static> fmt::Debug for Bound<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound")
            .field("id", &self.lease.as_ref().map(Lease::id))
            .field("pinned", &self.seated)
            .finish_non_exhaustive()
    }
}

/// Why nothing could be bound.
#[derive(Debug)]
#[non_exhaustive]
pub enum BindError<E> {
    /// None could be acquired.
    Acquire(AcquireError<E>),
    /// The resource that is pinned in this scope was in use the whole time: by another future of the scope, or by something that the
    /// caller itself keeps alive.
    InUse {
        /// The pool's name.
        pool: Arc<str>,
        /// How long the caller waited.
        waited: Duration,
        /// Where it was bound by who uses it.
        site: &'static Location<'static>,
    },
}

impl<E: Error> fmt::Display for BindError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(error) => error.fmt(f),
            Self::InUse { pool, waited, site } => write!(
                f,
                "pool `{pool}`: the resource of this scope was in use for {waited:.1?}, bound at {site}: end that use first"
            ),
        }
    }
}

impl<E: Error + 'static> Error for BindError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // Its text is ours, so its own cause comes next.
            Self::Acquire(error) => error.source(),
            Self::InUse { .. } => None,
        }
    }
}
