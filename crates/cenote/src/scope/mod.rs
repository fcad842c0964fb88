//! Scopes: all code that runs in one future uses the same resource, without passing it along.
//!
//! You need this module to carry a transaction through functions that know only the pool, or to
//! write a layer that does. Start with [`scope()`] and [`Pool::bind`], or with a [`Handle`].
//!
//! # Invariants
//! - **S1 one seat**: a scope has at most one pinned lease per pool. It rests in its seat or is out
//!   with one user, never both.
//! - **S2 in order**: callers that ask for a lease which is out get it in the order of asking.
//! - **S3 home**: when the scope ends, the leases that rest in it go back. A lease that is out then
//!   goes back when its user is done.
//! - **S4 one lease**: in a scope with [`one_lease`](Scope::one_lease), at most one lease of a pool
//!   is acquired at a time, pinned or not.
//!
//! The type system checks the first half of S1 (a seat is one enum). Tests that are named after the
//! promises check the rest.

mod attached;
mod bind;
mod bound;
mod current;
mod handle;
mod rules;
mod seat;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::rules::Rules;
use self::seat::{AnySeat, Seat};
use crate::manager::{LeaseEnd, Manager};
use crate::pool::Pool;

pub use self::bind::BindError;
pub use self::bound::Bound;
pub use self::handle::Handle;

/// Runs `future` in a scope of its own, which ends with it: normally, by an error, a panic or
/// cancellation.
///
/// In a scope a resource can be *pinned* ([`Bound::pin`]). Every [bind](Pool::bind) of the same
/// pool then gets the pinned one, until it is unpinned or the scope ends. A lease that is not
/// pinned goes back to its pool after each use, so that a task holds nothing while it does other
/// things.
///
/// A scope inside another one also uses the leases that are pinned in the outer one.
///
/// A task that is spawned inside does **not** inherit the scope. Pass it [`Scope::current`], and
/// let it enter the scope by [`run`](Scope::run).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::Pool;
/// use cenote::scope::Bound;
///
/// let pool = Pool::from_fn(async || Ok::<_, &str>(String::new())).build()?;
/// cenote::scope(async {
///     let mut bound = pool.bind().await?;
///     Bound::pin(&mut bound);
///     bound.push_str("begun");
///     drop(bound);
///     assert_eq!(pool.status().in_use, 1, "it rests in the scope");
///     assert_eq!(**pool.bind().await?, "begun");
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })
/// .await?;
/// assert_eq!(pool.status().idle, 1);
/// # Ok(()) }
/// ```
///
/// # Cancel safety
/// Dropping this future drops `future`, and then ends the scope.
pub async fn scope<F: Future>(future: F) -> F::Output {
    Scope::nested().run_and_end(future).await
}

/// A scope for code that polls by hand, as the layers of an HTTP stack do.
///
/// The scope is opened when code inside asks for it, so that it costs nothing where none does. It
/// ends when this is dropped.
///
/// ```
/// use cenote::scope::{LazyScope, Scope};
///
/// let mut scope = LazyScope::new();
/// assert!(!Scope::is_inside());
/// assert!(scope.enter(Scope::is_inside));
/// assert!(scope.enter(|| Scope::current().is_some()));
/// ```
#[derive(Debug)]
pub struct LazyScope {
    opened: Option<Scope>,
    open: fn() -> Scope,
}

impl LazyScope {
    /// Makes a scope that is not opened yet.
    pub fn new() -> Self {
        Self::opened_by(Scope::new)
    }

    /// Makes a scope that `open` opens: with a label or with rules. Inside another scope a plain
    /// one is opened.
    ///
    /// ```
    /// use cenote::scope::{LazyScope, Scope};
    ///
    /// let mut scope = LazyScope::opened_by(|| Scope::new().labelled("GET /rooms"));
    /// let label = scope.enter(|| Scope::current().and_then(|scope| scope.label()));
    /// assert_eq!(label.as_deref(), Some("GET /rooms"));
    /// ```
    pub fn opened_by(open: fn() -> Scope) -> Self {
        Self { opened: None, open }
    }

    /// Makes a call inside the scope: mostly a poll.
    pub fn enter<T>(&mut self, call: impl FnOnce() -> T) -> T {
        if self.opened.is_none() && Scope::is_inside() {
            self.opened = Some(Scope::nested());
        }
        current::enter(&mut self.opened, self.open, call)
    }
}

impl Default for LazyScope {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for LazyScope {
    fn drop(&mut self) {
        if let Some(scope) = &self.opened {
            scope.end();
        }
    }
}

/// A handle to a scope. The scope ends with [`end`](Scope::end), or with its last handle. A scope
/// that is made by [`scope()`] ends by itself.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
/// use cenote::scope::Scope;
///
/// let outer = Scope::new();
/// outer.adopt(&pool, pool.bind().await?).expect("a new scope has a free seat");
/// outer
///     .run(async {
///         let inner = Scope::nested();
///         assert!(inner.is_pinned(&pool), "the lease of the outer scope is used here, too");
///         assert!(inner.peek(&pool).is_some());
///     })
///     .await;
/// outer.end();
/// assert!(!Scope::is_inside() && outer.peek(&pool).is_none());
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Scope {
    seats: Arc<Mutex<Seats>>,
}

#[derive(Default)]
struct Seats {
    ended: bool,
    rules: Rules,
    /// Leases that are pinned there are used here, too.
    outer: Option<Scope>,
    /// At most one value of each type.
    attached: Vec<Arc<dyn Any + Send + Sync>>,
    /// A scope meets one or two pools: a list is quicker than a map.
    taken: Vec<(usize, Arc<dyn AnySeat>)>,
}

/// Ends a scope. Dropped while its future still runs, it tells the managers that the leases were
/// cancelled.
struct Ends {
    scope: Scope,
    end: LeaseEnd,
}

impl Drop for Ends {
    fn drop(&mut self) {
        let unwinds = std::thread::panicking();
        self.scope.end_as(if unwinds {
            LeaseEnd::Unwinding
        } else {
            self.end
        });
    }
}

impl Scope {
    /// Opens a scope that no future runs in yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a scope inside the one that the caller runs in. Leases that are pinned there are used
    /// here, too.
    pub fn nested() -> Self {
        let scope = Self::new();
        scope.lock().outer = Self::current();
        scope
    }

    /// Returns the scope that the caller runs in, to hand it to another task, which enters it by
    /// [`run`](Scope::run).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use cenote::scope::Scope;
    ///
    /// assert!(Scope::current().is_none());
    /// cenote::scope(async {
    ///     let scope = Scope::current().expect("it runs in one");
    ///     let inherits = tokio::spawn(async { Scope::is_inside() });
    ///     assert!(!inherits.await.unwrap());
    ///     let entered = tokio::spawn(scope.run(async { Scope::is_inside() }));
    ///     assert!(entered.await.unwrap());
    /// })
    /// .await;
    /// # }
    /// ```
    pub fn current() -> Option<Self> {
        current::current()
    }

    /// Returns whether the caller runs in a scope.
    pub fn is_inside() -> bool {
        current::is_inside()
    }

    /// Runs `future` in this scope, and ends the scope with it: normally, by an error, a panic or
    /// cancellation.
    ///
    /// # Cancel safety
    /// Dropping this future drops `future`, and then ends the scope.
    pub async fn run_and_end<F: Future>(self, future: F) -> F::Output {
        let mut ends = Ends {
            scope: self,
            end: LeaseEnd::Cancelled,
        };
        let output = ends.scope.run(future).await;
        ends.end = LeaseEnd::Returned;
        output
    }

    /// Runs `future` in this scope. The scope does not end with it.
    ///
    /// # Cancel safety
    /// Dropping this future drops `future`.
    pub fn run<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        current::with(self.clone(), future)
    }

    /// Seats `bound` in this scope, pinned until the scope ends. Then it goes back to where it was
    /// bound before. Returns it if another lease of `pool` has the seat, or the scope has ended.
    pub fn adopt<M: Manager + 'static>(
        &self,
        pool: &Pool<M>,
        mut bound: Bound<M>,
    ) -> Result<(), Bound<M>> {
        let is_own =
            |seat: &Arc<Seat<M>>| bound.seat.as_ref().is_some_and(|of| Arc::ptr_eq(of, seat));
        match self.own_seat(pool) {
            Some(seat) if is_own(&seat) && Bound::pin(&mut bound) => Ok(()),
            Some(seat) => seat.adopt(bound),
            None => Err(bound),
        }
    }

    /// Returns the lease of `pool` that is pinned here, without acquiring one and without waiting.
    /// `None` if there is none, or if it is in use.
    #[track_caller]
    pub fn peek<M: Manager + 'static>(&self, pool: &Pool<M>) -> Option<Bound<M>> {
        Seat::peek(&self.seat(pool)?)
    }

    /// Returns whether a lease of `pool` is pinned here, in use or not.
    pub fn is_pinned<M: Manager + 'static>(&self, pool: &Pool<M>) -> bool {
        self.seat(pool).is_some_and(|seat| seat.is_taken())
    }

    /// Ends the scope. Leases that rest in it go back now, and leases that are out when their user
    /// is done. Code that still runs in it binds from now on as if there were no scope. Ending
    /// twice does no harm.
    pub fn end(&self) {
        self.end_as(LeaseEnd::of_drop());
    }

    fn end_as(&self, end: LeaseEnd) {
        let seats = {
            let mut seats = self.lock();
            seats.ended = true;
            seats.outer = None;
            std::mem::take(&mut seats.taken)
        };
        for (_, seat) in seats {
            seat.end(end);
        }
    }

    /// Returns the seat that is taken, in this scope or in the next one around it. If none is, the
    /// seat of a scope around it that holds its leases; else its own.
    fn seat<M: Manager + 'static>(&self, pool: &Pool<M>) -> Option<Arc<Seat<M>>> {
        let own = self.own_seat(pool);
        if own.as_ref().is_some_and(|seat| seat.is_taken()) {
            return own;
        }
        let Some(outer) = self.lock().outer.clone() else {
            return own;
        };
        let around = outer.seat(pool);
        let around = around.filter(|seat| seat.is_taken() || outer.rules().hold);
        around.or(own)
    }

    fn own_seat<M: Manager + 'static>(&self, pool: &Pool<M>) -> Option<Arc<Seat<M>>> {
        // The seat keeps the address of its pool from being used again.
        let key = Arc::as_ptr(&pool.shared.0).addr();
        let mut seats = self.lock();
        if seats.ended {
            return None;
        }
        let found = seats.taken.iter().find(|(of, _)| *of == key);
        let seat: Arc<dyn AnySeat> = match found {
            Some((_, seat)) => Arc::clone(seat),
            None => {
                let seat = Arc::new(Seat::new(pool));
                seats.taken.push((key, seat.clone()));
                seat
            }
        };
        drop(seats);
        let seat: Arc<dyn Any + Send + Sync> = seat.into_any();
        let seat = seat.downcast();
        Some(seat.expect("bug: one address, two kinds of pools"))
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seats = self.lock();
        f.debug_struct("Scope")
            .field("pools", &seats.taken.len())
            .field("ended", &seats.ended)
            .finish()
    }
}
