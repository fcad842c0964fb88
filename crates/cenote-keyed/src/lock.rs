//! The lock of the budget, and its stand-in under shuttle.

#[cfg(not(cenote_model))]
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(cenote_model)]
use shuttle::sync::{Mutex, MutexGuard};
#[cfg(cenote_model)]
use std::sync::PoisonError;

#[cfg(cenote_model)]
pub(crate) use shuttle::sync::atomic::AtomicUsize;
#[cfg(not(cenote_model))]
pub(crate) use std::sync::atomic::AtomicUsize;

pub(crate) type Guard<'a, T> = MutexGuard<'a, T>;

/// A mutex that a panic does not poison: no user code runs under it.
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
