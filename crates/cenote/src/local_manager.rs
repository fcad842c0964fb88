//! The manager of a pool that belongs to one thread. Every [`Manager`] is one.

use std::error::Error;
use std::fmt;
use std::future::Future;

use crate::error::ErrorClass;
use crate::manager::{LeaseEnd, Manager};
use crate::sever::Severer;

/// Opens one kind of resource for a [`LocalPool`](crate::local::LocalPool). It is a [`Manager`]
/// without `Send`.
///
/// Neither the manager nor its resources and futures have to be `Send`. The methods have the same
/// meanings, limits and defaults as those of [`Manager`], and every `Manager` is a `LocalManager`.
///
/// ```
/// use std::cell::RefCell;
/// use std::rc::Rc;
/// use cenote::local::{LocalManager, LocalPool};
///
/// /// Sessions that share a cache of this thread.
/// struct Sessions {
///     cache: Rc<RefCell<Vec<String>>>,
/// }
///
/// struct Session(Rc<RefCell<Vec<String>>>);
///
/// impl LocalManager for Sessions {
///     type Resource = Session;
///     type Error = std::io::Error;
///
///     async fn open(&self) -> std::io::Result<Session> {
///         Ok(Session(Rc::clone(&self.cache)))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::task::LocalSet::new().run_until(async {
/// let sessions = Sessions { cache: Rc::default() };
/// let pool = LocalPool::builder(sessions).build()?;
/// pool.acquire().await?.0.borrow_mut().push("seen".to_owned());
/// assert_eq!(pool.manager().cache.borrow().len(), 1);
/// # Ok(()) }).await }
/// ```
#[expect(unused_variables, reason = "the names document the methods")]
pub trait LocalManager {
    /// The thing that is lent.
    type Resource;
    /// Why it could not be opened, checked, cleaned or closed.
    type Error: Into<Box<dyn Error + Send + Sync>> + fmt::Debug + 'static;

    /// Opens a resource. As [`Manager::open`].
    ///
    /// # Cancel safety
    /// The future is dropped midway only when `open_timeout` is over or its `LocalSet` is dropped.
    fn open(&self) -> impl Future<Output = Result<Self::Resource, Self::Error>>;

    /// Returns what kind of error this is. As [`Manager::classify`].
    fn classify(&self, error: &Self::Error) -> ErrorClass {
        ErrorClass::of_any(error)
    }

    /// Finds out whether a resource is alive. As [`Manager::check`].
    ///
    /// # Cancel safety
    /// The future is dropped midway only when `check_timeout` is over, and then the resource is
    /// closed, or when its `LocalSet` is dropped.
    fn check(
        &self,
        resource: &mut Self::Resource,
    ) -> impl Future<Output = Result<(), Self::Error>> {
        async { Ok(()) }
    }

    /// Returns whether a resource is known to be unusable. As [`Manager::is_broken`].
    fn is_broken(&self, resource: &mut Self::Resource, end: LeaseEnd) -> bool {
        false
    }

    /// Returns whether a resource that works is closed all the same. As [`Manager::is_spent`].
    fn is_spent(&self, resource: &mut Self::Resource, end: LeaseEnd) -> bool {
        false
    }

    /// Returns whether [`clean`](LocalManager::clean) must run before the next use. As
    /// [`Manager::needs_cleaning`].
    fn needs_cleaning(&self, resource: &mut Self::Resource) -> bool {
        false
    }

    /// Makes a resource as good as new. As [`Manager::clean`].
    ///
    /// # Cancel safety
    /// The future is dropped midway only when `clean_timeout` is over, and then the resource is
    /// closed, or when its `LocalSet` is dropped.
    fn clean(
        &self,
        resource: &mut Self::Resource,
    ) -> impl Future<Output = Result<(), Self::Error>> {
        async { Ok(()) }
    }

    /// Returns a way to cut a resource from outside. As [`Manager::severer`].
    fn severer(&self, resource: &mut Self::Resource) -> Option<Severer> {
        None
    }

    /// Closes a resource for good. As [`Manager::close`].
    ///
    /// # Cancel safety
    /// The future is dropped midway only when `close_timeout` is over or its `LocalSet` is dropped.
    fn close(&self, resource: Self::Resource) -> impl Future<Output = Result<(), Self::Error>> {
        drop(resource);
        async { Ok(()) }
    }
}

impl<M: Manager> LocalManager for M {
    type Resource = M::Resource;
    type Error = M::Error;

    fn open(&self) -> impl Future<Output = Result<Self::Resource, Self::Error>> {
        Manager::open(self)
    }

    fn classify(&self, error: &Self::Error) -> ErrorClass {
        Manager::classify(self, error)
    }

    fn check(
        &self,
        resource: &mut Self::Resource,
    ) -> impl Future<Output = Result<(), Self::Error>> {
        Manager::check(self, resource)
    }

    #[inline]
    fn is_broken(&self, resource: &mut Self::Resource, end: LeaseEnd) -> bool {
        Manager::is_broken(self, resource, end)
    }

    #[inline]
    fn is_spent(&self, resource: &mut Self::Resource, end: LeaseEnd) -> bool {
        Manager::is_spent(self, resource, end)
    }

    #[inline]
    fn needs_cleaning(&self, resource: &mut Self::Resource) -> bool {
        Manager::needs_cleaning(self, resource)
    }

    fn clean(
        &self,
        resource: &mut Self::Resource,
    ) -> impl Future<Output = Result<(), Self::Error>> {
        Manager::clean(self, resource)
    }

    fn severer(&self, resource: &mut Self::Resource) -> Option<Severer> {
        Manager::severer(self, resource)
    }

    fn close(&self, resource: Self::Resource) -> impl Future<Output = Result<(), Self::Error>> {
        Manager::close(self, resource)
    }
}
