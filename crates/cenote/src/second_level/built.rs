//! A resource of the second level together with its base.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::desk::Lower;
use super::{BaseOf, Upper};
use crate::ledger::Recall;

/// A resource of the second level with the base resource that it is built on. It dereferences to
/// the resource.
pub struct Built<U: Upper> {
    // In this order: the resource is dropped before its base goes.
    resource: U::Resource,
    lower: Lower<U::Base>,
}

impl<U: Upper> Built<U> {
    pub(super) fn new(resource: U::Resource, lower: Lower<U::Base>) -> Self {
        Self { resource, lower }
    }

    /// Returns the base resource: of the lease that this one has for itself, or the clone that it
    /// has of a [shared](crate::Builder::shared_by) one.
    pub fn base(&mut self) -> &mut BaseOf<U> {
        self.lower.base()
    }

    /// Returns the resource and its base.
    pub fn parts(&mut self) -> (&mut U::Resource, &mut BaseOf<U>) {
        (&mut self.resource, self.lower.base())
    }

    pub(super) fn take_apart(self) -> (U::Resource, Lower<U::Base>) {
        (self.resource, self.lower)
    }

    /// Whether the base is wanted back.
    pub(super) fn recalls(&self) -> Recall {
        self.lower.recalls()
    }

    /// Which lease it is built on.
    pub(super) fn lease(&self) -> usize {
        self.lower.number()
    }
}

impl<U: Upper> Deref for Built<U> {
    type Target = U::Resource;

    fn deref(&self) -> &U::Resource {
        &self.resource
    }
}

impl<U: Upper> DerefMut for Built<U> {
    fn deref_mut(&mut self) -> &mut U::Resource {
        &mut self.resource
    }
}

impl<U: Upper<Resource: fmt::Debug>> fmt::Debug for Built<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Built")
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}
