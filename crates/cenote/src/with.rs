//! Closures that borrow a resource, and what becomes of it when they fail.

use std::future::Future;
use std::marker::PhantomData;
use std::thread;

use crate::error::AcquireError;
use crate::lease::Lease;
use crate::manager::{LeaseEnd, Manager};
use crate::pool::Pool;

impl<M: Manager + 'static> Pool<M> {
    /// Lends a resource for the time of a closure.
    ///
    /// If the closure panics, the resource is discarded. If this future is dropped while the
    /// closure runs, the manager is asked whether the resource [is broken](Manager::is_broken).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(vec![1, 2, 3])).build()?;
    /// let sum = pool.with(async |numbers| numbers.iter().sum::<i32>()).await?;
    /// assert_eq!(sum, 6);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping this future drops the closure's future, and then returns the resource.
    #[track_caller]
    pub fn with<T>(
        &self,
        closure: impl AsyncFnOnce(&mut M::Resource) -> T,
    ) -> impl Future<Output = Result<T, AcquireError<M::Error>>> {
        let acquiring = self.acquire();
        async move {
            let mut used = Used::new(acquiring.await?, |_: Option<&()>| true);
            let value = closure(used.resource()).await;
            used.end(None);
            Ok(value)
        }
    }

    /// As [`with`](Pool::with), for a closure that may fail. After an error, too, the manager is
    /// asked whether the resource [is broken](Manager::is_broken). [`LeaseEnd`](crate::LeaseEnd)
    /// has an example.
    ///
    /// # Cancel safety
    /// As [`with`](Pool::with).
    #[track_caller]
    pub fn try_with<T, E>(
        &self,
        closure: impl AsyncFnOnce(&mut M::Resource) -> Result<T, E>,
    ) -> impl Future<Output = Result<Result<T, E>, AcquireError<M::Error>>> {
        self.try_with_judge(closure, |_| true)
    }

    /// As [`try_with`](Pool::try_with), with a judge of its own: `keep` is called with the error of
    /// the closure, or with `None` if this future is dropped while the closure runs. If it returns
    /// false, the resource is discarded. If it returns true, the manager is asked.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let pool = cenote::Pool::from_fn(async || Ok::<_, &str>(())).build()?;
    /// let is_harmless = |error: Option<&&str>| error == Some(&"not found");
    /// for (error, idle) in [("not found", 1), ("broken pipe", 0)] {
    ///     let closure = async |_: &mut ()| Err::<(), _>(error);
    ///     assert_eq!(pool.try_with_judge(closure, is_harmless).await?, Err(error));
    ///     assert_eq!(pool.status().idle, idle);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// As [`with`](Pool::with).
    #[track_caller]
    pub fn try_with_judge<T, E>(
        &self,
        closure: impl AsyncFnOnce(&mut M::Resource) -> Result<T, E>,
        keep: impl FnOnce(Option<&E>) -> bool,
    ) -> impl Future<Output = Result<Result<T, E>, AcquireError<M::Error>>> {
        let acquiring = self.acquire();
        async move {
            let mut used = Used::new(acquiring.await?, keep);
            let value = closure(used.resource()).await;
            used.end(value.as_ref().err());
            Ok(value)
        }
    }
}

/// A lease that a closure can use: of a pool, or bound to a scope.
pub(crate) trait Usable {
    type Resource;

    fn resource(&mut self) -> &mut Self::Resource;
    fn end(self, end: LeaseEnd);
    fn discard(self);
}

impl<M: Manager + 'static> Usable for Lease<M> {
    type Resource = M::Resource;

    fn resource(&mut self) -> &mut M::Resource {
        self
    }

    fn end(self, end: LeaseEnd) {
        Lease::end(self, end);
    }

    fn discard(self) {
        Lease::discard(self);
    }
}

/// A lease that a closure uses. If it is dropped before the closure is done, the closure has
/// panicked or was cancelled.
pub(crate) struct Used<L: Usable, E, K: FnOnce(Option<&E>) -> bool> {
    /// Present until the end.
    inside: Option<(L, K)>,
    error: PhantomData<fn(&E)>,
}

impl<L: Usable, E, K: FnOnce(Option<&E>) -> bool> Used<L, E, K> {
    pub(crate) fn new(lease: L, keep: K) -> Self {
        Self {
            inside: Some((lease, keep)),
            error: PhantomData,
        }
    }

    pub(crate) fn resource(&mut self) -> &mut L::Resource {
        let inside = self.inside.as_mut();
        let (lease, _) = inside.expect("bug: a closure runs before its end");
        lease.resource()
    }

    /// The closure is done.
    pub(crate) fn end(mut self, error: Option<&E>) {
        let Some((lease, keep)) = self.inside.take() else {
            return;
        };
        match error {
            None => drop(lease),
            Some(_) if keep(error) => lease.end(LeaseEnd::Failed),
            Some(_) => lease.discard(),
        }
    }
}

impl<L: Usable, E, K: FnOnce(Option<&E>) -> bool> Drop for Used<L, E, K> {
    fn drop(&mut self) {
        let Some((lease, keep)) = self.inside.take() else {
            return;
        };
        if !thread::panicking() && keep(None) {
            lease.end(LeaseEnd::Cancelled);
        } else {
            lease.discard();
        }
    }
}
