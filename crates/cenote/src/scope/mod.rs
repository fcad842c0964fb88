//! The scope: binds resources to a future, so that all that runs in it meets the same ones.
//!
//! # Invariants
//! - **S1 one seat**: a scope has at most one pinned lease per pool. It rests in its seat or is out with one user, never both.
//! - **S2 in order**: who asks for a lease that is out gets it in the order of asking.
//! - **S3 home**: what a scope holds goes back when the scope ends; what is out then, when its user is done.
//!
//! The type system checks the first half of S1 (a seat is one enum); the tests named after the promises check the rest.

mod bound;
mod seat;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::seat::{AnySeat, Seat};
use crate::manager::Manager;
use crate::pool::Pool;
use crate::rt;

pub use self::bound::{BindError, Bound};

/// Runs `future` in a scope of its own, which ends with it: normally, by an error, a panic or cancellation.
///
/// In a scope a resource can be *pinned* ([`Bound::pin`]): whoever [binds](Pool::bind) one of the same pool then gets the pinned one, until it
/// is unpinned or the scope ends. What is not pinned goes back to its pool after each use, so that a task which thinks holds nothing.
///
/// A scope inside another meets what is pinned in the outer one as well.
///
/// A task that is spawned inside does **not** inherit the scope. [`Scope::current`] is a handle to be passed to it, and
/// [`run`](Scope::run) enters it there.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::{Bound, Pool};
///
/// let pool = Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).build()?;
/// cenote::scope(async {
///     let mut bound = pool.bind().await?;
///     Bound::pin(&mut bound);
///     bound.push_str("begun");
///     drop(bound);
///     assert_eq!(pool.status().in_use, 1, "it rests in the scope");
///     assert_eq!(**pool.bind().await?, "begun");
///     Ok::<_, Box<dyn std::error::Error>>(())
/// }).await?;
/// assert_eq!(pool.status().idle, 1);
/// # Ok(()) }
/// ```
///
/// # Cancel safety
/// Dropping this future drops `future`, and then ends the scope.
pub async fn scope<F: Future>(future: F) -> F::Output {
    let ending = Ending(Scope::nested());
    ending.0.run(future).await
}

/// Ends its scope when it is dropped.
struct Ending(Scope);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A scope for one who polls by hand, as the layers of an HTTP stack do: opened by the first who asks for it, so that it costs nothing
/// where nobody does, and ended when this is dropped.
///
/// ```
/// use cenote::{LazyScope, Scope};
///
/// let mut scope = LazyScope::new();
/// assert!(!Scope::is_inside());
/// assert!(scope.enter(Scope::is_inside));
/// assert!(scope.enter(|| Scope::current().is_some()));
/// ```
#[derive(Debug, Default)]
pub struct LazyScope(Option<Scope>);

impl LazyScope {
    /// Not opened yet.
    pub fn new() -> Self {
        Self(None)
    }

    /// Makes a call in it: mostly a poll.
    pub fn enter<T>(&mut self, call: impl FnOnce() -> T) -> T {
        if self.0.is_none() && Scope::is_inside() {
            self.0 = Some(Scope::nested());
        }
        rt::local::enter(&mut self.0, call)
    }
}

impl Drop for LazyScope {
    fn drop(&mut self) {
        if let Some(scope) = &self.0 {
            scope.end();
        }
    }
}

/// A handle to a scope. The scope ends with [`end`](Scope::end), or with its last handle; [`scope()`] does it by itself.
#[derive(Clone)]
pub struct Scope {
    seats: Arc<Mutex<Seats>>,
}

#[derive(Default)]
struct Seats {
    ended: bool,
    /// What is pinned there is met here as well.
    outer: Option<Scope>,
    /// A scope meets one or two pools: a list is quicker than a map.
    taken: Vec<(usize, Arc<dyn AnySeat>)>,
}

impl Scope {
    /// Opens a scope that nobody runs in yet.
    #[expect(
        clippy::new_without_default,
        reason = "a scope is opened, not defaulted"
    )]
    pub fn new() -> Self {
        Self {
            seats: Arc::default(),
        }
    }

    /// Opens a scope inside the one that the caller runs in: what is pinned there is met here as well.
    pub fn nested() -> Self {
        let scope = Self::new();
        scope.lock().outer = Self::current();
        scope
    }

    /// The scope that the caller runs in: to hand it to another task, which enters it by [`run`](Scope::run).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use cenote::Scope;
    ///
    /// assert!(Scope::current().is_none());
    /// cenote::scope(async {
    ///     let scope = Scope::current().expect("it runs in one");
    ///     let inherits = tokio::spawn(async { Scope::current().is_some() });
    ///     assert!(!inherits.await.unwrap());
    ///     let entered = tokio::spawn(async move { scope.run(async { Scope::current().is_some() }).await });
    ///     assert!(entered.await.unwrap());
    /// }).await;
    /// # }
    /// ```
    pub fn current() -> Option<Self> {
        rt::local::current()
    }

    /// Does the caller run in a scope?
    pub fn is_inside() -> bool {
        rt::local::is_inside()
    }

    /// Runs `future` in this scope. The scope does not end with it.
    ///
    /// # Cancel safety
    /// Dropping this future drops `future`.
    pub fn run<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        rt::local::with(self.clone(), future)
    }

    /// Seats `bound` in this scope, pinned until the scope ends; then it goes back to where it was bound before. Gives it back if
    /// another lease of `pool` has the seat, or the scope has ended.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, std::io::Error>(String::new())).build()?;
    /// use cenote::Scope;
    ///
    /// let scope = Scope::new();
    /// scope.adopt(&pool, pool.bind().await?).expect("a new scope has a free seat");
    /// assert!(scope.is_pinned(&pool) && scope.peek(&pool).is_some());
    /// scope.end();
    /// assert_eq!(pool.status().idle, 1);
    /// # Ok(()) }
    /// ```
    pub fn adopt<M: Manager + 'static>(
        &self,
        pool: &Pool<M>,
        bound: Bound<M>,
    ) -> Result<(), Bound<M>> {
        match self.own_seat(pool) {
            Some(seat) => seat.adopt(bound),
            None => Err(bound),
        }
    }

    /// The lease of `pool` that is pinned here, without acquiring one and without waiting. `None` if there is none, or if it is in use.
    #[track_caller]
    pub fn peek<M: Manager + 'static>(&self, pool: &Pool<M>) -> Option<Bound<M>> {
        Seat::peek(&self.seat(pool)?)
    }

    /// Is a lease of `pool` pinned here, in use or not?
    pub fn is_pinned<M: Manager + 'static>(&self, pool: &Pool<M>) -> bool {
        self.seat(pool).is_some_and(|seat| seat.is_taken())
    }

    /// Ends the scope: what rests in it goes back now, what is out when its user is done. Whoever still runs in it is outside any
    /// scope from now on. More than once does no harm.
    pub fn end(&self) {
        let seats = {
            let mut seats = self.lock();
            seats.ended = true;
            seats.outer = None;
            std::mem::take(&mut seats.taken)
        };
        for (_, seat) in seats {
            seat.end();
        }
    }

    /// The seat that is taken, in this scope or in the next one around it; else its own.
    fn seat<M: Manager + 'static>(&self, pool: &Pool<M>) -> Option<Arc<Seat<M>>> {
        let own = self.own_seat(pool);
        if own.as_ref().is_some_and(|seat| seat.is_taken()) {
            return own;
        }
        let outer = self.lock().outer.clone();
        let outer = outer.and_then(|scope| scope.seat(pool));
        outer.filter(|seat| seat.is_taken()).or(own)
    }

    fn own_seat<M: Manager + 'static>(&self, pool: &Pool<M>) -> Option<Arc<Seat<M>>> {
        // The seat keeps the address of its pool from being used again.
        let key = Arc::as_ptr(&pool.shared).addr();
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
        Some(
            seat.downcast()
                .expect("bug: one address, two kinds of pools"),
        )
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
