//! Binding: the resource of the scope, or one of the pool.

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Scope;
use super::bound::Bound;
use super::rules::Rules;
use super::seat::{Seat, Took};
use crate::error::AcquireError;
use crate::lease::Lease;
use crate::manager::Manager;
use crate::pool::Pool;
use crate::shell::acquire::Patience;
use crate::shell::pooled::Stay;
use crate::shell::waiting::Waiting;
use crate::status::is_known;
use crate::time::{self, Moment};

impl<M: Manager + 'static> Pool<M> {
    /// Lends the resource that is pinned in the caller's [scope](crate::scope()), or acquires one.
    ///
    /// If the pinned resource is in use, this waits for it in order, within the pool's
    /// `acquire_timeout`. So two futures of one scope never share it. If none is pinned, another
    /// one is acquired, also while the scope uses some. Outside any scope this is
    /// [`acquire`](Pool::acquire).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let bound = pool.bind().await?;
    /// assert_eq!(pool.status().in_use, 1);
    /// drop(bound);
    /// assert_eq!(pool.status().idle, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future gives up its place in the queue.
    #[track_caller]
    pub fn bind(&self) -> impl Future<Output = Result<Bound<M>, BindError<M::Error>>> + Send {
        bind(self, Location::caller(), Patience::Usual)
    }

    /// As [`bind`](Pool::bind), within `limit` in place of the pool's `acquire_timeout`. `None`:
    /// for ever.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).max_size(1).build()?;
    /// # use std::time::Duration;
    /// let _only = pool.bind_within(None).await?;
    /// assert!(pool.bind_within(Duration::from_millis(5)).await.is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`bind`](Pool::bind).
    #[track_caller]
    pub fn bind_within(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> impl Future<Output = Result<Bound<M>, BindError<M::Error>>> + Send {
        bind(self, Location::caller(), Patience::For(limit.into()))
    }

    /// As [`bind`](Pool::bind), before `deadline` in place of the pool's `acquire_timeout`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use std::time::{Duration, Instant};
    ///
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(pool.bind_by(deadline).await.is_ok());
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`bind`](Pool::bind).
    #[track_caller]
    pub fn bind_by(
        &self,
        deadline: Instant,
    ) -> impl Future<Output = Result<Bound<M>, BindError<M::Error>>> + Send {
        let patience = Patience::Until(Moment::of(deadline));
        bind(self, Location::caller(), patience)
    }

    /// As [`bind`](Pool::bind), for a caller at `site`, and before `deadline`. `None`: within the
    /// pool's `acquire_timeout`.
    ///
    /// This is for a layer that knows its caller's line when it is called, and the deadline of the
    /// whole call when it is polled. A layer that cannot know that line passes
    /// [`UNKNOWN_SITE`](crate::status::UNKNOWN_SITE).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use std::panic::Location;
    ///
    /// let site = Location::caller();
    /// let _bound = pool.bind_at(site, pool.deadline()).await?;
    /// assert_eq!(pool.leases()[0].site, site);
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
        let deadline = deadline.map(Moment::of);
        bind(
            self,
            site,
            deadline.map_or(Patience::Usual, Patience::Until),
        )
    }

    /// Returns when an acquire that begins now times out by the pool's `acquire_timeout`, for calls
    /// that consist of several acquires and have one deadline. `None`: never.
    ///
    /// ```
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// use std::time::Instant;
    ///
    /// assert!(pool.deadline().is_some_and(|deadline| deadline > Instant::now()));
    /// # Ok::<_, cenote::ConfigError>(())
    /// ```
    pub fn deadline(&self) -> Option<Instant> {
        deadline_of(self, Patience::Usual).map(Moment::instant)
    }
}

fn deadline_of<M: Manager>(pool: &Pool<M>, patience: Patience) -> Option<Moment> {
    let limit = match patience {
        Patience::Until(deadline) => return Some(deadline),
        Patience::For(limit) => limit,
        Patience::Usual => pool.shared.limits.acquire_timeout,
    };
    time::now().checked_add(limit?)
}

/// One deadline covers both waits: for the resource of the scope, and for one of the pool.
async fn bind<M: Manager + 'static>(
    pool: &Pool<M>,
    site: &'static Location<'static>,
    mut patience: Patience,
) -> Result<Bound<M>, BindError<M::Error>> {
    let scope = Scope::current();
    let rules = scope.as_ref().map_or_else(Rules::default, Scope::rules);
    if let Some(latest) = rules.deadline {
        let own = deadline_of(pool, patience);
        patience = Patience::Until(own.map_or(latest, |own| own.min(latest)));
    }
    let seat = scope.and_then(|scope| scope.seat(pool));
    let mut claim = None;
    if let Some(seat) = seat
        .as_ref()
        .filter(|seat| rules.one_lease || seat.is_taken())
    {
        let deadline = deadline_of(pool, patience);
        patience = deadline.map_or(Patience::For(None), Patience::Until);
        match wait_for(pool, seat, site, rules.one_lease, deadline).await? {
            Took::Lease(bound) => return Ok(bound),
            Took::Seat => claim = Some(Claim(Some(seat))),
            Took::Nothing => {}
        }
    }
    let acquiring = Waiting::new(&pool.shared, site, patience);
    let lease = acquiring.await.map_err(BindError::Acquire)?;
    if let Some(label) = rules.label {
        Lease::label(&lease, String::from(&*label));
    }
    let mut bound = Bound {
        lease: Some(lease),
        seated: claim.is_some_and(Claim::used),
        pinned: false,
        seat,
    };
    if rules.hold {
        Bound::pin(&mut bound);
    }
    Ok(bound)
}

async fn wait_for<M: Manager + 'static>(
    pool: &Pool<M>,
    seat: &Arc<Seat<M>>,
    site: &'static Location<'static>,
    claims: bool,
    deadline: Option<Moment>,
) -> Result<Took<M>, BindError<M::Error>> {
    let mut turn = Turn { seat, ticket: None };
    let mut asked: Option<Moment> = None;
    let mut timer = pin!(time::sleep_until(deadline));
    poll_fn(|context| {
        let taken = Seat::poll_take(seat, &mut turn.ticket, site, claims, context);
        if taken.is_ready() {
            return taken.map(Ok);
        }
        let asked = *asked.get_or_insert_with(time::now);
        let in_use = || BindError::InUse {
            pool: Arc::clone(&pool.shared.name),
            waited: time::now().saturating_duration_since(asked),
            site: seat.user().unwrap_or(site),
        };
        timer.as_mut().poll(context).map(|()| Err(in_use()))
    })
    .await
}

/// A seat that is taken for a lease which is still being acquired. If it is dropped unused, the
/// next bind gets its turn.
struct Claim<'a, M: Manager + 'static>(Option<&'a Seat<M>>);

impl<M: Manager + 'static> Claim<'_, M> {
    /// The lease has the seat now.
    fn used(mut self) -> bool {
        self.0.take().is_some()
    }
}

impl<M: Manager + 'static> Drop for Claim<'_, M> {
    fn drop(&mut self) {
        if let Some(seat) = self.0 {
            seat.come_home(None, Stay::Broken);
        }
    }
}

/// A place in the queue for the seat. If it is dropped, the next bind gets its turn.
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

/// Why a bind failed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(()));
/// use std::time::Duration;
/// use cenote::scope::{BindError, Bound};
///
/// let pool = pool.acquire_timeout(Duration::from_millis(200)).build()?;
/// cenote::scope(async {
///     let mut bound = pool.bind().await.expect("one is free");
///     Bound::pin(&mut bound);
///     let second = pool.bind().await;
///     assert!(matches!(second, Err(BindError::InUse { .. })), "the first is still in use");
/// })
/// .await;
///
/// pool.close();
/// assert!(matches!(pool.bind().await, Err(BindError::Acquire(_))));
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum BindError<E> {
    /// No resource could be acquired.
    Acquire(AcquireError<E>),
    /// The resource of this scope was in use the whole time: by another future of the scope, or by
    /// something that the caller itself keeps alive. It is pinned, or the scope allows one lease.
    InUse {
        /// The pool's name.
        pool: Arc<str>,
        /// How long the caller waited.
        waited: Duration,
        /// The line of code that bound the lease which is in use.
        site: &'static Location<'static>,
    },
}

impl<E> fmt::Display for BindError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(error) => error.fmt(f),
            Self::InUse { pool, waited, site } => {
                write!(
                    f,
                    "pool `{pool}`: the resource of this scope was in use for {waited:.1?}"
                )?;
                if is_known(site) {
                    write!(f, ", bound at {site}")?;
                }
                f.write_str(": end that use first")
            }
        }
    }
}

impl<E: fmt::Debug + 'static> Error for BindError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // Its text is this text, so its own cause comes next.
            Self::Acquire(error) => error.source(),
            Self::InUse { .. } => None,
        }
    }
}
