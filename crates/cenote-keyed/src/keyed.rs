//! The manager of one key's pool: the user's manager, with a place in the budget for each resource.

use std::error::Error;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use cenote::error::ErrorClass;
use cenote::{LeaseEnd, Manager, Severer};
use tokio::time::timeout;

use crate::room::{Place, Share};
use crate::wait;

/// The manager of one key's pool: the manager that was made for the key, behind the budget.
pub struct Keyed<M> {
    manager: M,
    share: Arc<Share>,
    open_timeout: Option<Duration>,
}

impl<M> Keyed<M> {
    pub(crate) fn new(manager: M, share: Arc<Share>, open_timeout: Option<Duration>) -> Self {
        Self {
            manager,
            share,
            open_timeout,
        }
    }

    /// Returns the manager that was made for the key.
    pub fn manager(&self) -> &M {
        &self.manager
    }
}

impl<M: Manager> Manager for Keyed<M> {
    type Resource = Held<M::Resource>;
    type Error = ManagerError<M::Error>;

    /// The wait for a place does not count for `open_timeout`, so the pool has none.
    async fn open(&self) -> Result<Self::Resource, Self::Error> {
        let place = wait::place(&self.share).await;
        let place = place.ok_or(ManagerError::CalledOff)?;
        let opening = self.manager.open();
        let opened = match self.open_timeout {
            Some(limit) => timeout(limit, opening)
                .await
                .map_err(|_| ManagerError::OpenTimedOut(limit))?,
            None => opening.await,
        };
        let resource = opened.map_err(ManagerError::Manager)?;
        Ok(Held { resource, place })
    }

    fn classify(&self, error: &Self::Error) -> ErrorClass {
        match error {
            ManagerError::Manager(error) => self.manager.classify(error),
            ManagerError::OpenTimedOut(_) => ErrorClass::TimedOut,
            ManagerError::CalledOff => ErrorClass::CalledOff,
        }
    }

    async fn check(&self, held: &mut Self::Resource) -> Result<(), Self::Error> {
        let checked = self.manager.check(&mut held.resource).await;
        checked.map_err(ManagerError::Manager)
    }

    fn is_broken(&self, held: &mut Self::Resource, end: LeaseEnd) -> bool {
        self.manager.is_broken(&mut held.resource, end)
    }

    fn is_spent(&self, held: &mut Self::Resource, end: LeaseEnd) -> bool {
        // An idle resource that is about to be lent was not found by a look. It is asked for when
        // it comes back.
        self.manager.is_spent(&mut held.resource, end)
            || end != LeaseEnd::Idle && held.place.must_give_up()
    }

    fn needs_cleaning(&self, held: &mut Self::Resource) -> bool {
        self.manager.needs_cleaning(&mut held.resource)
    }

    fn must_stay(&self, held: &mut Self::Resource) -> bool {
        self.manager.must_stay(&mut held.resource)
    }

    async fn clean(&self, held: &mut Self::Resource) -> Result<(), Self::Error> {
        let cleaned = self.manager.clean(&mut held.resource).await;
        cleaned.map_err(ManagerError::Manager)
    }

    fn severer(&self, held: &mut Self::Resource) -> Option<Severer> {
        self.manager.severer(&mut held.resource)
    }

    fn shares_sessions(&self) -> bool {
        self.manager.shares_sessions()
    }

    async fn close(&self, held: Self::Resource) -> Result<(), Self::Error> {
        let Held { resource, place } = held;
        let closed = self.manager.close(resource).await;
        // Not earlier: the server counts a resource that is being closed, too.
        drop(place);
        closed.map_err(ManagerError::Manager)
    }
}

impl<M: fmt::Debug> fmt::Debug for Keyed<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("manager", &self.manager)
            .finish_non_exhaustive()
    }
}

/// A resource with its place in the budget. It dereferences to the resource.
///
/// A resource that is [detached](cenote::Lease::detach) keeps its place until this is dropped, so
/// the cap in total holds for detached resources, too.
pub struct Held<R> {
    resource: R,
    place: Place,
}

impl<R> Held<R> {
    /// Returns the resource, and gives its place back.
    pub fn into_inner(held: Self) -> R {
        held.resource
    }
}

impl<R> Deref for Held<R> {
    type Target = R;

    #[inline]
    fn deref(&self) -> &R {
        &self.resource
    }
}

impl<R> DerefMut for Held<R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut R {
        &mut self.resource
    }
}

impl<R: fmt::Debug> fmt::Debug for Held<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.resource.fmt(f)
    }
}

/// Why a resource of a key could not be opened, checked, cleaned or closed.
///
/// Inside a [`cenote::error::Cause`] it is the manager's own error, so that can be found there by
/// `downcast_ref`.
#[derive(Debug)]
#[non_exhaustive]
pub enum ManagerError<E> {
    /// The manager returned an error.
    Manager(E),
    /// The open took longer than `open_timeout`, from the moment when it had a place.
    OpenTimedOut(Duration),
    /// No caller needed the resource any more when a place came free. No caller sees this error.
    CalledOff,
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<ManagerError<E>> for Box<dyn Error + Send + Sync> {
    fn from(error: ManagerError<E>) -> Self {
        match error {
            ManagerError::Manager(error) => error.into(),
            ManagerError::OpenTimedOut(limit) => {
                format!("opening took longer than {limit:.1?}: see `open_timeout`").into()
            }
            ManagerError::CalledOff => "the open was called off".into(),
        }
    }
}
