//! A handle to a pool whose every use goes by the scope.

use std::fmt;
use std::future::Future;

use super::BindError;
use super::bound::Bound;
use crate::lease::Lease;
use crate::manager::{LeaseEnd, Manager};
use crate::pool::Pool;
use crate::with::{Usable, Used};

/// A handle for code that should not know about leases: each use [binds](Pool::bind) a resource for
/// the time of a closure. Clone it and share it.
///
/// The manager says whether the resource [must stay](Manager::must_stay) in the scope after a use.
/// So a driver gets transparent transactions: between two uses nothing is held, and inside one the
/// same resource serves all uses of the scope. Outside a scope every use is on its own.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use cenote::scope::Handle;
/// use cenote::{Manager, Pool};
///
/// #[derive(Default)]
/// struct Session {
///     in_transaction: bool,
/// }
///
/// struct Sessions;
///
/// impl Manager for Sessions {
///     type Resource = Session;
///     type Error = String;
///
///     async fn open(&self) -> Result<Session, String> {
///         Ok(Session::default())
///     }
///
///     fn must_stay(&self, session: &mut Session) -> bool {
///         session.in_transaction
///     }
/// }
///
/// let pool = Pool::builder(Sessions).build()?;
/// let db = Handle::new(&pool);
/// cenote::scope(async {
///     db.with(async |session| session.in_transaction = true).await?;
///     assert_eq!(pool.status().in_use, 1, "it stays in the scope");
///     assert!(db.with(async |session| session.in_transaction).await?);
///     db.with(async |session| session.in_transaction = false).await?;
///     assert_eq!(pool.status().in_use, 0, "it went back");
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })
/// .await?;
/// # Ok(()) }
/// ```
pub struct Handle<M: Manager + 'static> {
    pool: Pool<M>,
}

impl<M: Manager + 'static> Handle<M> {
    /// Makes a handle to `pool`.
    pub fn new(pool: &Pool<M>) -> Self {
        Self { pool: pool.clone() }
    }

    /// Returns the pool.
    pub fn pool(&self) -> &Pool<M> {
        &self.pool
    }

    /// Lends the resource of the scope, or one of the pool, for the time of a closure.
    ///
    /// If the closure panics, the resource is discarded. If this future is dropped while the
    /// closure runs, the manager is asked whether the resource [is broken](Manager::is_broken).
    ///
    /// # Cancel safety
    /// Dropping this future drops the closure's future, and then returns the resource.
    #[track_caller]
    pub fn with<T>(
        &self,
        closure: impl AsyncFnOnce(&mut M::Resource) -> T,
    ) -> impl Future<Output = Result<T, BindError<M::Error>>> {
        let binding = self.pool.bind();
        async move {
            let mut used = Used::new(binding.await?, |_: Option<&()>| true);
            let value = closure(used.resource()).await;
            used.end(None);
            Ok(value)
        }
    }

    /// As [`with`](Handle::with), for a closure that may fail. After an error, too, the manager is
    /// asked whether the resource is broken.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let handle = cenote::scope::Handle::new(&pool);
    /// assert_eq!(handle.try_with(async |_| Err::<(), _>("not found")).await?, Err("not found"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`with`](Handle::with).
    #[track_caller]
    pub fn try_with<T, E>(
        &self,
        closure: impl AsyncFnOnce(&mut M::Resource) -> Result<T, E>,
    ) -> impl Future<Output = Result<Result<T, E>, BindError<M::Error>>> {
        let binding = self.pool.bind();
        async move {
            let mut used = Used::new(binding.await?, |_: Option<&E>| true);
            let value = closure(used.resource()).await;
            used.end(value.as_ref().err());
            Ok(value)
        }
    }
}

impl<M: Manager + 'static> Usable for Bound<M> {
    type Resource = M::Resource;

    fn resource(&mut self) -> &mut M::Resource {
        let lease: &mut Lease<M> = self;
        lease
    }

    fn end(self, end: LeaseEnd) {
        Bound::end(self, end);
    }

    fn discard(self) {
        Bound::discard(self);
    }
}

impl<M: Manager + 'static> Clone for Handle<M> {
    fn clone(&self) -> Self {
        Self::new(&self.pool)
    }
}

impl<M: Manager + 'static> fmt::Debug for Handle<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.pool.name()).finish()
    }
}
